"""What vLLM's own functions say about a made-up model. Runs where vLLM is installed, of any release since 0.19.1.

Nothing of vLLM's arithmetic is written here a second time: layers state their cache by vLLM's own methods, and its
platform, scheduler and configuration classes resolve the rest. Only what would load a model is stood in for.
"""

# mypy: ignore-errors
# vLLM and torch are not where types are checked.

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import logging
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, get_args
from unittest import mock

import torch
import vllm.config.vllm
from vllm.config import CacheConfig, ModelConfig, VllmConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.layers.attention.attention import Attention
from vllm.model_executor.layers.attention.mla_attention import MLAAttention
from vllm.model_executor.layers.mamba import abstract as mamba
from vllm.model_executor.layers.mamba.mamba_mixer2 import MambaMixer2
from vllm.model_executor.layers.mamba.mamba_utils import MambaStateShapeCalculator
from vllm.model_executor.models import ModelRegistry
from vllm.model_executor.models import config as model_rules
from vllm.platforms.interface import Platform
from vllm.v1.attention.backend import AttentionBackend, AttentionType, MultipleOf
from vllm.v1.core import kv_cache_utils
from vllm.v1.kv_cache_interface import MLAAttentionSpec

from bench._kv_geometries import Answer, Case, State
from installer.domain.kv_layers import KERNEL_BLOCK_TOKENS, MLA_BLOCK_TOKENS
from installer.domain.registry import LayerGroup
from installer.domain.settings import Settings

try:
    from vllm.v1.core import kv_cache_planning as planning  # since 0.33
except ImportError:
    planning = kv_cache_utils

logging.disable(logging.WARNING)
RELEASE: str = vllm.__version__.split("+")[0]
CHECKPOINT_STEP = 64
KNOWS_CHECKPOINTS = hasattr(mamba, "get_mamba_prefill_checkpoint_alignment")


def ask(case: Case) -> Answer:
    """Ask vLLM for the layout of a case."""
    config = _Config(case)
    with _stand_ins(case):
        try:
            specs = _layer_specs(case, config)
            groups = planning.get_kv_cache_groups(config, dict(specs))
        except (NotImplementedError, AssertionError):
            return Answer(refused=True)
        block = _bytes_per_block(config, groups)
        laid_out = planning.get_kv_cache_config_from_groups(config, groups, case.available_bytes)
        tokens, concurrency = _capacity(config, laid_out)
        starts, longest = _start(config, specs, groups, case.available_bytes)
        return Answer(
            groups=len(groups),
            block_tokens=tuple(sorted(group.kv_cache_spec.block_size for group in groups)),
            bytes_per_block=block,
            blocks=laid_out.num_blocks,
            needed_bytes=_with_builder(planning._max_memory_usage_bytes_from_groups)(config, groups),
            concurrency=concurrency,
            tokens=tokens,
            starts=starts,
            longest=longest,
        )


# --- the configuration -----------------------------------------------------------------------------------------------


class _Config:
    """A VllmConfig without a checkpoint; what it derives, vLLM's own properties derive."""

    def __init__(self, case: Case) -> None:
        settings, kinds = case.settings, [group.kind for group in case.architecture.layer_groups]
        self.model_config = _Model(case)
        self.scheduler_config = SimpleNamespace(
            max_num_batched_tokens=settings.max_num_batched_tokens,
            async_scheduling=settings.async_scheduling,
            disable_hybrid_kv_cache_manager=False,
            enable_chunked_prefill=True,
        )
        self.parallel_config = SimpleNamespace(
            pipeline_parallel_size=1,
            tensor_parallel_size=1,
            decode_context_parallel_size=1,
            prefill_context_parallel_size=1,
        )
        self.attention_config = SimpleNamespace(hisparse_config=None, backend=None)
        self.compilation_config = SimpleNamespace(static_forward_context={})
        self.kv_transfer_config = self.diffusion_config = None
        self.use_v2_model_runner = True
        self.speculative_config = _speculation(settings) if settings.speculative_tokens else None
        self.cache_config = _cache_config(
            settings,
            self.model_config,
            mla="mla" in kinds,
            packed=any(group.fp8_token_bytes for group in case.architecture.layer_groups),
        )


for _name in (
    "max_concurrent_batches",
    "max_in_flight_tokens",
    "num_speculative_tokens",
    "num_prefill_lookahead_tokens",
):
    if hasattr(VllmConfig, _name):
        setattr(_Config, _name, getattr(VllmConfig, _name))


class _Model(SimpleNamespace):
    is_prefix_caching_supported = ModelConfig.is_prefix_caching_supported

    def __init__(self, case: Case) -> None:
        layers = case.architecture.layer_groups
        first = next((group for group in layers if group.kind != "linear"), layers[0])
        hybrid = first.kind != "linear" and any(group.kind == "linear" for group in layers)
        mla = first.kind == "mla"
        super().__init__(
            dtype=torch.bfloat16,
            use_mla=mla,
            is_hybrid=hybrid,
            attn_type="hybrid" if hybrid else "attention_free" if first.kind == "linear" else "decoder",
            pooler_config=None,
            runner_type="generate",
            is_chunked_prefill_supported=True,
            max_model_len=case.settings.context,
            original_max_model_len=case.settings.context,
            architecture="MadeUp",
            hf_config=SimpleNamespace(model_type="made_up"),
            hf_text_config=SimpleNamespace(model_type="made_up"),
            supports_mamba_prefix_caching=case.settings.mamba_cache_mode == "all"
            and case.state is not None
            and case.state.kind == "mamba2",
            get_num_kv_heads=lambda _parallel: 1 if mla else first.kv_heads,
            get_head_size=lambda: first.latent_dim if mla else first.head_dim,
            get_mamba_chunk_size=lambda: 256,
        )


def _cache_config(settings: Settings, model: _Model, *, mla: bool, packed: bool) -> CacheConfig:
    config = CacheConfig(
        cache_dtype="fp8_ds_mla" if packed and settings.kv_cache_dtype == "fp8" else settings.kv_cache_dtype
    )
    kernel = MLA_BLOCK_TOKENS if mla else KERNEL_BLOCK_TOKENS
    config.block_size = settings.block_tokens or kernel
    config.user_specified_block_size = bool(settings.block_tokens)
    config.calculate_kv_scales = False
    if hasattr(config, "kv_cache_layout"):
        config.kv_cache_layout = "LBNHC"
    mode = settings.mamba_cache_mode
    modes = get_args(CacheConfig.__dataclass_fields__["mamba_cache_mode"].type) or ("none", "align", "all")
    config.mamba_cache_mode = mode if mode in modes and mode == "all" and RELEASE < "0.32" else "none"
    config.enable_prefix_caching = mode != "none"
    if mode == "default":
        arguments = SimpleNamespace(enable_chunked_prefill=True, enable_prefix_caching=None)
        EngineArgs._set_default_chunked_prefill_and_prefix_caching_args(arguments, model)
        config.enable_prefix_caching = arguments.enable_prefix_caching
    return config


def _speculation(settings: Settings) -> SimpleNamespace:
    return SimpleNamespace(
        num_speculative_tokens=settings.speculative_tokens,
        method="mtp",
        use_eagle=lambda: True,
        use_eagle_block_drop=lambda: False,
        use_multi_module_mtp=lambda: False,
        use_dspark=lambda: False,
    )


# --- what would load a model or need a card --------------------------------------------------------------------------


class _Kernels(AttentionBackend):
    """FlashAttention's block of 16 tokens."""

    blocks: tuple[int, ...] = (KERNEL_BLOCK_TOKENS,)

    @classmethod
    def get_supported_kernel_block_sizes(cls, _kv_cache_spec: Any = None) -> list[Any]:
        return [MultipleOf(size) for size in cls.blocks]

    @staticmethod
    def get_name() -> str:
        return "MADE_UP"


class _MlaKernels(_Kernels):
    blocks = (MLA_BLOCK_TOKENS,)


class _Card(Platform):
    """vLLM's platform, told which kernels the layers use."""

    kernels: type[_Kernels] = _Kernels

    @classmethod
    def _find_non_ssm_backend(cls, _config: Any) -> type[AttentionBackend]:
        return cls.kernels

    @classmethod
    def _find_non_ssm_backends(cls, _config: Any) -> list[type[AttentionBackend]]:
        return [cls.kernels]


@contextlib.contextmanager
def _stand_ins(case: Case) -> Iterator[None]:
    """Put the made-up model's states where vLLM looks a model's class up, and keep its kernels from being asked."""
    model = SimpleNamespace(
        get_mamba_state_shape_from_config=lambda _config: _shapes(case.state, case.settings),
        get_mamba_state_dtype_from_config=lambda _config: (torch.bfloat16, torch.float32),
    )
    step = CHECKPOINT_STEP if _saves_checkpoints(case) else None
    alignment = "get_mamba_prefill_checkpoint_alignment"
    with (
        mock.patch.object(ModelRegistry, "resolve_model_cls", return_value=(model, "MadeUp")),
        mock.patch.object(vllm.config.vllm, "set_current_vllm_config", contextlib.nullcontext),
        mock.patch.object(mamba, alignment, return_value=step, create=True),
    ):
        yield


def _saves_checkpoints(case: Case) -> bool:
    """Say whether FlashInfer's gated-delta kernels are stood in for, which only a card of 9.0 or later has."""
    gated = case.state is not None and case.state.kind == "gated_delta"
    return gated and case.settings.state_checkpoints and KNOWS_CHECKPOINTS


def _shapes(state: State, settings: Settings) -> Any:
    drafts = settings.speculative_tokens
    if state.kind == "gated_delta":
        return MambaStateShapeCalculator.gated_delta_net_state_shape(
            1, state.key_heads, state.value_heads, state.key_dim, state.value_dim, state.kernel, drafts
        )
    return MambaStateShapeCalculator.mamba2_state_shape(
        tp_world_size=1,
        intermediate_size=state.value_heads * state.value_dim,
        n_groups=state.key_heads,
        num_heads=state.value_heads,
        head_dim=state.value_dim,
        state_size=state.key_dim,
        conv_kernel=state.kernel,
        num_spec=drafts,
    )


# --- the layers ------------------------------------------------------------------------------------------------------


def _layer_specs(case: Case, config: _Config) -> dict[str, Any]:
    architecture = case.architecture
    if case.state is not None:
        hybrid = config.model_config.is_hybrid
        rules = model_rules.HybridAttentionMambaModelConfig if hybrid else model_rules.MambaModelConfig
        rules.verify_and_update_config(config)
    if hasattr(Platform, "_align_hybrid_block_size") and config.model_config.attn_type != "attention_free":
        _Card.kernels = _MlaKernels if config.model_config.use_mla else _Kernels
        _Card.update_block_size_for_backend(config)
    drafted = architecture.draft_layer_groups if case.settings.speculative_tokens else ()
    names = iter(range(10_000))
    return {
        f"model.layers.{next(names)}.mixer": _as_the_runner_has_it(_layer_spec(group, case, config))
        for group in architecture.layer_groups + drafted
        for _ in range(group.layers)
    }


def _as_the_runner_has_it(spec: Any) -> Any:
    """Say that the kernels for CUDA read pages by their stride, as v1/worker/gpu_model_runner.py did up to 0.28."""
    if not hasattr(spec, "indexes_kv_by_block_stride"):
        return spec
    return dataclasses.replace(spec, indexes_kv_by_block_stride=True)


def _layer_spec(group: LayerGroup, case: Case, config: _Config) -> Any:
    fp8 = case.settings.kv_cache_dtype == "fp8"
    if group.kind == "linear":
        return _state_spec(case, config)
    if group.kind == "mla" and group.token_bytes:
        return MLAAttentionSpec(
            block_size=config.cache_config.block_size, num_kv_heads=1, head_size=group.token_bytes, dtype=torch.uint8
        )
    if group.kind == "mla":
        dtype = ("fp8_ds_mla" if group.fp8_token_bytes else "fp8") if fp8 else "auto"
        layer = SimpleNamespace(
            kv_cache_dtype=dtype,
            attn_backend=_MlaKernels,
            head_size=group.latent_dim,
            sliding_window=None,
            indexer=None,
            non_causal_multi_token_decode=False,
            topk_buffer_width=None,
            _uses_flat_kv_cache=lambda: False,
        )
        return MLAAttention.get_kv_cache_spec(layer, config)
    layer = SimpleNamespace(
        kv_cache_dtype="fp8" if fp8 else "auto",
        kv_cache_torch_dtype=torch.uint8 if fp8 else torch.bfloat16,
        attn_type=AttentionType.DECODER,
        attn_backend=_Kernels,
        sliding_window=group.window if group.kind == "sliding" else None,
        num_kv_heads=group.kv_heads,
        head_size=group.head_dim,
        head_size_v=group.value_head_dim or group.head_dim,
    )
    return Attention.get_kv_cache_spec(layer, config)


def _state_spec(case: Case, config: _Config) -> Any:
    state, settings = case.state, case.settings
    assert state is not None

    class Layer(MambaMixer2 if state.kind == "mamba2" else mamba.MambaBase):  # type: ignore[misc]
        mamba_type: Any = None
        is_kv_cache_tp_replicated = False

        def __init__(self) -> None:
            pass

        def get_state_shape(self) -> Any:
            return _shapes(state, settings)

        def get_state_dtype(self) -> Any:
            return torch.bfloat16, torch.float32

    spec = Layer().get_kv_cache_spec(config)
    if not _saves_checkpoints(case):
        return spec
    return dataclasses.replace(spec, num_prefill_checkpoint_blocks=1)


# --- the answers -----------------------------------------------------------------------------------------------------


def _with_builder(function: Any) -> Any:
    """Bind what some functions take first since 0.33."""
    return (
        function if planning is kv_cache_utils else functools.partial(function, planning.DefaultKVCacheConfigBuilder())
    )


def _bytes_per_block(config: _Config, groups: Any) -> int:
    asked = getattr(planning, "_pool_bytes_per_block", None)
    if asked is None:
        probe = planning.get_kv_cache_config_from_groups(config, groups, 1 << 50)
        return sum(tensor.size for tensor in probe.kv_cache_tensors) // probe.num_blocks
    takes_config = len(inspect.signature(asked).parameters) == 2
    return asked(config, groups) if takes_config else asked(groups)


def _capacity(config: _Config, laid_out: Any) -> tuple[int, float]:
    """Return tokens and concurrency as the log has them; before `get_kv_cache_capacity` by listening to the log."""
    if hasattr(kv_cache_utils, "get_kv_cache_capacity"):
        return kv_cache_utils.get_kv_cache_capacity(config, laid_out)
    lines: list[str] = []
    logger, kv_cache_utils.logger = (
        kv_cache_utils.logger,
        SimpleNamespace(info_once=lambda text, *values, **_: lines.append(text % values), info=lambda *_: None),
    )
    try:
        kv_cache_utils._report_kv_cache_config(config, laid_out)
    finally:
        kv_cache_utils.logger = logger
    tokens = re.search(r"KV cache size: ([\d,]+) tokens", "\n".join(lines))
    assert tokens, lines
    concurrency = kv_cache_utils.get_max_concurrency_for_kv_cache_config(config, laid_out)
    return int(tokens[1].replace(",", "")), concurrency


def _start(config: _Config, specs: dict[str, Any], groups: Any, available: int) -> tuple[bool, int]:
    """Say whether vLLM would start, and the longest context: its own estimate where it refuses."""
    more = () if planning is kv_cache_utils else (groups,)
    try:
        planning.get_kv_cache_configs(config, [specs], [available], *more)
    except ValueError as refusal:
        estimate = re.search(r"estimated maximum model length is (\d+)", str(refusal))
        return False, int(estimate[1]) if estimate else 0
    return True, config.model_config.max_model_len
