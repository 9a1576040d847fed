"""What engines printed, recomputed from (model, engine, settings).

``logged.csv`` holds published log lines: the question, its argument (a setting, or a *logged input*
such as a pool, with both ends of its rounding), the printed answer and half a unit of its last
digit. The printed answers never enter the computation.

Left out, with the reason: V21 (its dimensions were inferred from the number), V25 and V29
(measured as a difference of totals), V30 (repacked weights: 65.97 GiB resident against 60.77 GiB
stored), L09, L11, L13 (no public config at hand), L18, L19 (llama.cpp of 2023), B13 (the published
value contradicts the model's own config). V07 is a Llama 3 70B, which has the dimensions of 3.1.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit.spec.attention import StateAttention

ROWS = list(csv.DictReader(Path(__file__).with_name("logged.csv").read_text().splitlines()))
UNITS = {"GiB": 2**30, "MiB": 2**20, "MB": 1e6, "x": 1, "blocks": 1, "tokens": 1}
# public configs of models that are not built in
CONFIGS = {
    "deepseek-coder-6.7b": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
        "vocab_size": 32256, "max_position_embeddings": 16384,
    },
    "mistral-small-24b-2501": {
        "model_type": "mistral", "hidden_size": 5120, "intermediate_size": 32768,
        "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
        "head_dim": 128, "sliding_window": None, "vocab_size": 131072,
        "max_position_embeddings": 32768,
    },
    "qwen3-4b-2507": {
        "model_type": "qwen3", "hidden_size": 2560, "intermediate_size": 9728,
        "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 262144,
        "tie_word_embeddings": True,
    },
    "qwen2.5-1.5b": {
        "model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960,
        "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
        "vocab_size": 151936, "max_position_embeddings": 32768, "tie_word_embeddings": True,
    },
}  # fmt: skip
QWEN35_9B_LAYERS = 32


def model_of(slug: str, shared: Path) -> Any:
    if slug in CONFIGS:
        return lk.load_model(CONFIGS[slug])
    if slug == "qwen3.5-9b":
        return lk.load_model(shared / "facts" / "configs" / "Qwen__Qwen3.5-9B.json")
    return lk.load_model(slug)


def room_of(row: dict[str, str], model: Any, **changes: Any) -> Any:
    settings = json.loads(row["deployment"]) | {"engine": row["engine"]}
    return lk.capacity(model, "h200-sxm-141gb", lk.Deployment(**settings), **changes)


def answer(row: dict[str, str], model: Any) -> float:  # noqa: C901, PLR0911  # one line a question
    room, ask = room_of(row, model), row["ask"]
    parts = row["argument"].split(":")
    number = int(parts[0]) if parts[0].isdecimal() else 0
    match ask:
        case "concurrency_of_blocks":
            pool = number * room.block_bytes
            return room_of(row, model, pool_bytes=pool).max_concurrency(int(parts[1]))
        case "pool_of_blocks":
            return number * room.block_bytes
        case "block":
            return room.block_bytes
        case "swap_blocks":
            return room.swap_blocks(number * 2**30)
        case "needed":
            return room.ideal_bytes(number)
        case "transfer":
            return room.transfer_bytes(number)
        case "growing_keys":
            # keys are half of what full-attention layers keep
            return (
                sum(k.layers * k.token_bytes for k in room.kinds if not k.state_bytes)
                / 2
                * (number)
            )
        case "conv_state":
            states = [g for g in model.groups if isinstance(g.attention, StateAttention)]
            return number * sum(g.count * g.attention.conv_elements() for g in states)
        case "kv_buffer" | "swa_buffer" | "swa_full":
            context, kind, ubatch = int(parts[0]), parts[1], int(parts[2])
            cache = room.llamacpp(
                n_ctx=context, cache_type_k=kind, cache_type_v=kind, n_ubatch=ubatch,
                swa_full=ask == "swa_full",
            )  # fmt: skip
            if ask == "swa_full":
                return cache.bytes
            wanted = "kv" if ask == "kv_buffer" else "swa"
            return sum(b.bytes for b in cache.buffers if b.kind == wanted)
        case "expanded":
            context, slots = int(parts[0]), int(parts[1])
            return room.llamacpp(
                n_ctx=context * slots, n_parallel=slots, latent="expanded",
                cache_type_k="f16", cache_type_v="f16",
            ).bytes  # fmt: skip
    raise AssertionError(ask)


SINGLE = [row for row in ROWS if not row["ask"].endswith("_of_pool")]
RANGES = [row for row in ROWS if row["ask"].endswith("_of_pool")]


@pytest.mark.parametrize("row", SINGLE, ids=[row["id"] for row in SINGLE])
def test_printed_value(row: dict[str, str], shared: Path) -> None:
    found = answer(row, model_of(row["model"], shared)) / UNITS[row["unit"]]
    assert found == pytest.approx(float(row["logged"]), abs=float(row["half_unit"]) + 1e-9)


@pytest.mark.parametrize("row", RANGES, ids=[row["id"] for row in RANGES])
def test_printed_tokens_of_a_rounded_pool(row: dict[str, str], shared: Path) -> None:
    model = model_of(row["model"], shared)
    ends = [float(part) * 2**30 for part in row["argument"].split(":")]
    rooms = [room_of(row, model, pool_bytes=pool) for pool in ends]
    if row["ask"] == "tokens_of_pool":
        low, high = (room.printed_tokens["vllm_blocks_of_a_group"] for room in rooms)
    else:
        low, high = (room.resident_tokens for room in rooms)
    assert low <= int(row["logged"]) <= high
    assert high / low < 1.003
