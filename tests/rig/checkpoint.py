"""Small repositories that look like a checkpoint: real configuration names, valid safetensors, random numbers."""

from __future__ import annotations

import json
import random
import struct


def tiny_checkpoint(hidden: int = 64, *, layers: int = 2, shards: int = 2, seed: int = 0) -> dict[str, bytes]:
    """The files of a Qwen3 of this width; the weights take about ``layers * 26 * hidden**2`` bytes in bfloat16."""
    intermediate, vocabulary = 3 * hidden, 256
    config = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16",
        "hidden_size": hidden, "intermediate_size": intermediate, "num_hidden_layers": layers,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": max(8, hidden // 4),
        "vocab_size": vocabulary, "max_position_embeddings": 32768, "tie_word_embeddings": True,
    }  # fmt: skip
    tensors = _tensors(hidden, intermediate, vocabulary, layers)
    names = [f"model-{number:05d}-of-{shards:05d}.safetensors" for number in range(1, shards + 1)]
    chance = random.Random(seed)
    files: dict[str, bytes] = {}
    weight_map: dict[str, str] = {}
    for number, name in enumerate(names):
        held = dict(list(tensors.items())[number::shards])
        files[name] = safetensors(held, chance)
        weight_map |= dict.fromkeys(held, name)
    total = sum(2 * rows * columns for rows, columns in tensors.values())
    return files | {
        "config.json": _json(config),
        "generation_config.json": _json({"temperature": 0.6, "top_p": 0.95}),
        "model.safetensors.index.json": _json({"metadata": {"total_size": total}, "weight_map": weight_map}),
        "tokenizer.json": _json({"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}),
        "tokenizer_config.json": _json({"tokenizer_class": "Qwen2Tokenizer"}),
        "README.md": b"# A tiny model\n",
        ".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n",
    }


def safetensors(shapes: dict[str, tuple[int, int]], chance: random.Random) -> bytes:
    """A safetensors file with bfloat16 tensors of these shapes: length of the header, header, numbers."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, (rows, columns) in shapes.items():
        size = 2 * rows * columns
        header[name] = {"dtype": "BF16", "shape": [rows, columns], "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + chance.randbytes(offset)


def _tensors(hidden: int, intermediate: int, vocabulary: int, layers: int) -> dict[str, tuple[int, int]]:
    shapes = {"model.embed_tokens.weight": (vocabulary, hidden)}
    for layer in range(layers):
        at = f"model.layers.{layer}"
        for projection in ("q", "k", "v", "o"):
            shapes[f"{at}.self_attn.{projection}_proj.weight"] = (hidden, hidden)
        shapes[f"{at}.mlp.gate_proj.weight"] = (intermediate, hidden)
        shapes[f"{at}.mlp.up_proj.weight"] = (intermediate, hidden)
        shapes[f"{at}.mlp.down_proj.weight"] = (hidden, intermediate)
    return shapes


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode()
