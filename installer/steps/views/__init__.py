"""What a window or a report draws, as values: everything is worked out here, and nothing is said in words."""

from installer.steps.views.card import GpuCard, Holder, gpu_cards
from installer.steps.views.docker import Requirement, requirements_of
from installer.steps.views.memory import Part, parts
from installer.steps.views.summary import DiffLine, DiskUse, Summary, summary

__all__ = [
    "DiffLine",
    "DiskUse",
    "GpuCard",
    "Holder",
    "Part",
    "Requirement",
    "Summary",
    "gpu_cards",
    "parts",
    "requirements_of",
    "summary",
]
