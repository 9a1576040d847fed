"""Sizes that others found in their llama.cpp logs, and the rules that they follow from."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import CapacityError, LedgerError, UnsupportedDtypeError
from ledgerkit.readers.config import read_config, read_json
from ledgerkit.spec.llamacpp_cache import CACHE_TYPES, LlamaCppCache, llamacpp_cache
from ledgerkit.spec.model import Model

# row of the table -> config, fields that differ from it, settings, and the buffers it adds up
ROWS: dict[str, tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "L02": ("openai__gpt-oss-120b", {"num_hidden_layers": 24, "num_local_experts": 32,
            "layer_types": ["sliding_attention", "full_attention"] * 12},
            {"n_ctx": 8192, "n_ubatch": 128, "cache_type_k": "q8_0", "cache_type_v": "q8_0"},
            ("swa",)),
    "L07": ("google__gemma-4-E4B-it", {}, {"n_ctx": 32768}, ("kv",)),
    "L08": ("google__gemma-4-E4B-it", {}, {"n_ctx": 32768}, ("swa",)),
    # the language model of UI-Venus-1.5-8B is a Qwen3-8B
    "L11": ("Qwen__Qwen3-8B", {}, {"n_ctx": 8192}, ("kv",)),
    "L14": ("deepseek-ai__DeepSeek-V2-Lite", {},
            {"n_ctx": 16384, "n_parallel": 8, "latent": "expanded"}, ("kv",)),
    "L15": ("openai__gpt-oss-120b", {}, {"n_ctx": 131072, "swa_full": True}, ("kv", "swa")),
    "L20": ("deepseek-ai__DeepSeek-R1", {}, {"n_ctx": 2048, "latent": "expanded"}, ("kv",)),
}  # fmt: skip
LATENT_PARTS = ("L16", "L17")
"""Rotary and latent part of one cache, logged apart by an experimental branch."""
NO_CONFIG = {
    "L09": "the model is not named: dimensions were inferred from the log",
    "L13": "DictaLM-3.0-Nemotron-12B: no config",
    "L18": "LLaMA-30B of 2023: no config, a float32 cache and cells that were not padded",
    "L19": "open_llama_3B of 2023: no config, cells that were not padded",
    "V25": "a difference of device memory, not a line of the log",
}


@pytest.fixture(scope="module")
def logged(shared: Path) -> dict[str, dict[str, str]]:
    with (shared / "facts" / "kv_logged.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def load(shared: Path, name: str, changes: dict[str, Any]) -> Model:
    return read_config({**read_json(shared / "facts" / "configs" / f"{name}.json"), **changes})


def mib(cache: LlamaCppCache, kinds: tuple[str, ...]) -> float:
    return sum(buffer.bytes for buffer in cache.buffers if buffer.kind in kinds) / 2**20


@pytest.mark.parametrize("row", ROWS)
def test_logged_buffers_are_reproduced(row: str, logged, shared: Path):
    name, changes, settings, kinds = ROWS[row]
    unit = {"MiB": 1, "GiB": 1024}[logged[row]["unit"]]
    text = logged[row]["logged"]
    size = mib(llamacpp_cache(load(shared, name, changes), **settings), kinds) / unit
    # what the log rounds to its last digit
    assert abs(size - float(text)) <= 0.5 * 10 ** -len(text.partition(".")[2]) + 1e-9


def test_latent_and_rotary_part_of_one_cache(logged, shared: Path):
    model = load(shared, "deepseek-ai__DeepSeek-R1", {})
    parts = sum(float(logged[row]["logged"]) for row in LATENT_PARTS)
    assert mib(llamacpp_cache(model, 32768), ("kv",)) == parts


def test_every_llamacpp_row_is_reproduced_or_has_a_reason(logged):
    rows = {key for key, row in logged.items() if "llama" in row["engine"].lower()}
    of_llamacpp = {key for key in rows if logged[key]["quality"] == "exact" or key in NO_CONFIG}
    assert of_llamacpp == ROWS.keys() | set(LATENT_PARTS) | NO_CONFIG.keys()


LLAMA = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "vocab_size": 128256, "max_position_embeddings": 131072}  # fmt: skip
GEMMA = {"model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912,
         "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads": 1,
         "head_dim": 256, "vocab_size": 262144, "max_position_embeddings": 32768,
         "sliding_window": 1024}  # fmt: skip


def test_windowed_cells():
    """Window plus physical batch, padded to 256: 1536 for Gemma 3's window of 1024."""
    cells = [buffer.cells for buffer in llamacpp_cache(read_config(GEMMA), 8192).buffers]
    assert cells == [8192, 1536]
    shared_cells = llamacpp_cache(read_config(GEMMA), 8192, 4, unified=True).buffers
    assert [buffer.cells for buffer in shared_cells] == [8192, 4 * 1024 + 512]


@given(
    st.sampled_from([LLAMA, GEMMA]), st.integers(1, 200_000), st.integers(1, 64), st.booleans(),
    st.sampled_from(CACHE_TYPES), st.integers(1, 4096), st.integers(0, 4096),
)  # fmt: skip
def test_what_holds_for_every_setting(
    config, n_ctx, n_parallel, unified, cache_type, batch, ubatch
):
    model = read_config(config)
    cache = llamacpp_cache(model, n_ctx, n_parallel, cache_type_k=cache_type,
                           cache_type_v=cache_type, unified=unified, n_batch=batch,
                           n_ubatch=ubatch)  # fmt: skip
    assert cache.n_ctx >= n_ctx
    assert cache.n_ctx_seq % 256 == 0
    assert cache.n_ctx == cache.n_ctx_seq * (1 if unified else n_parallel)
    assert cache.bytes == sum(buffer.bytes for buffer in cache.buffers)
    assert sum(buffer.layers for buffer in cache.buffers) == model.num_hidden_layers
    full = llamacpp_cache(model, n_ctx, n_parallel, cache_type_k=cache_type,
                          cache_type_v=cache_type, unified=unified, n_batch=batch,
                          n_ubatch=ubatch, swa_full=True)  # fmt: skip
    assert full.bytes >= cache.bytes
    # never less than what the live tokens need, when every slot is full
    kv_dtype = {"f32": "fp32", "f16": "fp16"}.get(cache_type, cache_type)
    live = model.cache_bytes(cache.n_ctx_seq, kv_dtype)
    assert full.bytes >= live
    assert cache.bytes >= live * (1 if unified else n_parallel)


@pytest.mark.parametrize(("settings", "error"), [
    ({"cache_type_k": "q6_k"}, UnsupportedDtypeError),
    ({"cache_type_v": "fp8"}, UnsupportedDtypeError),
    ({"cache_type_v": "q8_0", "flash_attn": False}, CapacityError),
    ({"n_parallel": 0}, CapacityError),
    ({"n_parallel": 257}, CapacityError),
    ({"n_ctx": -1}, CapacityError),
    ({"n_ctx": 1 << 33}, CapacityError),
    ({"n_batch": 0}, CapacityError),
])  # fmt: skip
def test_settings_that_llamacpp_does_not_take(settings, error):
    with pytest.raises(error):
        llamacpp_cache(read_config(LLAMA), **settings)


def test_windows_are_honoured_by_model_type():
    """llama.cpp ignores the window of Mistral; that of an unknown type is not guessed at."""
    mistral = read_config({**LLAMA, "model_type": "mistral", "sliding_window": 4096})
    assert [buffer.kind for buffer in llamacpp_cache(mistral, 8192).buffers] == ["kv"]
    stranger = mistral.model_copy(update={"model_type": "stranger"})
    with pytest.raises(CapacityError, match="honours the sliding window"):
        llamacpp_cache(stranger, 8192)
    kinds = [buffer.kind for buffer in llamacpp_cache(stranger, 8192, windowed=True).buffers]
    assert kinds == ["kv", "swa"]


def test_attention_whose_cache_is_not_known_is_refused(shared: Path):
    with pytest.raises(LedgerError):
        llamacpp_cache(load(shared, "deepseek-ai__DeepSeek-V4-Pro", {}), 8192)


def test_index_keys_have_a_buffer_of_their_own(shared: Path):
    """DeepSeek-V3.2: a latent of 576 and an index key of 128 in each of 61 layers."""
    cache = llamacpp_cache(load(shared, "deepseek-ai__DeepSeek-V3.2", {}), 8192)
    assert [(buffer.kind, buffer.layers) for buffer in cache.buffers] == [
        ("kv", 61), ("indexer", 61)]  # fmt: skip
    assert [buffer.bytes for buffer in cache.buffers] == [8192 * 61 * 576 * 2, 8192 * 61 * 128 * 2]


def test_compute_buffers_that_are_not_derived():
    """None rather than a guess: F32 caches, no flash attention, graphs that are not known."""
    model = read_config(LLAMA)
    known = llamacpp_cache(model, 8192)
    assert known.compute_bytes is not None
    assert [line.split()[0] for line in known.lines] == ["size", "output", "compute"]
    assert llamacpp_cache(model, 8192, cache_type_k="f32").compute_bytes is None
    assert llamacpp_cache(model, 8192, flash_attn=False).compute_bytes is None
    olmo = LLAMA | {"model_type": "olmo2"}
    assert llamacpp_cache(read_config(olmo), 8192).compute_bytes is None
    # quantized values are rotated by a matrix of 64 x 64, and keys by one as wide as a head
    rotated = llamacpp_cache(model, 8192, cache_type_k="q8_0", cache_type_v="q8_0").compute_bytes
    assert rotated is not None
    assert rotated - known.compute_bytes == 4 * (64**2 + 128**2)
    # masks grow with the cells, all else with the tokens of a batch
    longer = llamacpp_cache(model, 16384).compute_bytes
    assert longer is not None
    assert longer - known.compute_bytes == 8192 * 512 * 2
