"""Check of what the log says about the kernels for NVFP4."""

from __future__ import annotations

import re

from installer.domain.problems import SlowKernel
from installer.steps.smoke.asked import Asked, NotApplicable

KERNEL = re.compile(r"\b\w*NvFp4\w*Kernel\b")
"""Such as FlashInferCutlassNvFp4LinearKernel, which vLLM names when it has chosen (0.20 to 0.33)."""

FALLBACK = re.compile(r"\bMarlin\w*NvFp4\w*|FP4[^\n]{0,160}Marlin kernel", re.IGNORECASE)
"""vLLM 0.19.1 to 0.33: marlin_utils_fp4.py."""


def kernel(asked: Asked) -> str:
    """Name the kernel; one that only unpacks the weights is slower and right, which is a remark."""
    log = asked.evidence.log()
    if not log:
        raise NotApplicable("no_log")
    if FALLBACK.search(log):
        asked.remarks.append(SlowKernel(kernel="Marlin"))
        return "Marlin"
    found = KERNEL.search(log)
    if found is None:
        raise NotApplicable("no_fp4")
    return found[0]
