"""Pools, blocks and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit._capacities.kinds import LayerKind, layer_kinds
from ledgerkit._capacities.paged import page_plan
from ledgerkit.errors import CapacityError, LedgerError
from ledgerkit.text.notes import note_in

GIB = 2**30


def test_hybrid_block_sizes_as_vllm_logs_them() -> None:
    # logged: block 1056 (0.76 % padding) and 784 (0.13 %); 2096 with an fp8 cache
    def block(slug: str, kv_dtype: str = "bf16") -> int:
        return lk.capacity(slug, "h100-sxm-80gb", lk.Deployment(kv_dtype=kv_dtype)).plan.block

    assert block("qwen3.5-35b-a3b") == 1056
    assert block("qwen3.5-27b") == 784
    assert block("qwen3.5-35b-a3b", "fp8") == 2096


def test_gemma_3_pads_eight_layers() -> None:
    # 52 windowed and 10 full layers: groups of 10, so 6 + 1 groups and 8 layers of padding
    plan = lk.capacity("gemma-3-27b-it", "h100-sxm-80gb").plan
    assert [group.groups for group in plan.groups] == [6, 1]
    assert plan.padded_layers == 8


def test_gpt_oss_prints_tokens_that_are_not_its_limit() -> None:
    room = lk.capacity("gpt-oss-120b", "h100-sxm-80gb", pool_bytes=5.38 * GIB)
    assert room.resident_tokens == 148_352
    assert room.printed_tokens["vllm_blocks_of_a_group"] < 0.55 * room.resident_tokens


def test_pipeline_stage_needs_its_own_layers_only() -> None:
    # 16 of 48 layers need a third of 24 GiB
    deployment = lk.Deployment(pp=3)
    room = lk.capacity("qwen3-30b-a3b", "h100-sxm-80gb", deployment)
    assert room.ideal_bytes(262_144) == 8 * GIB
    assert room.ideal_bytes(262_144, "replica") == 24 * GIB


def test_latents_have_a_copy_on_every_rank() -> None:
    one = lk.capacity("deepseek-v3", "h200-sxm-141gb", lk.Deployment(tp=1))
    eight = lk.capacity("deepseek-v3", "h200-sxm-141gb", lk.Deployment(tp=8))
    assert one.bytes_per_token == eight.bytes_per_token == 70_272


@pytest.mark.parametrize(
    ("model", "layout", "field", "smallest"),
    [
        ("llama-3.1-70b", {"tp": 2}, "weights", 4),
        ("llama-3.1-70b", {"tp": 2, "max_num_seqs": 64}, "max_model_len", 4),
        ("qwen3-32b", {}, "max_num_seqs", 2),
        ("deepseek-v3", {"tp": 8}, "weights", 16),
    ],
)
def test_smallest_tp_and_cheapest_change(model, layout, field, smallest) -> None:
    room = lk.capacity(model, "h100-sxm-80gb", lk.Deployment(**layout))
    assert room.fits() != "yes"
    assert room.smallest_tp == smallest
    change = room.cheapest_change
    assert change is not None
    assert change.field == field
    again = lk.capacity(
        model, "h100-sxm-80gb", lk.Deployment(**(layout | {change.field: change.value}))
    )
    assert again.max_concurrency() >= 1


def test_capacity_agrees_with_the_ledger() -> None:
    deployment = lk.Deployment(tp=2)
    work = lk.Workload(prompt_tokens=8000, output_tokens=192)
    room = lk.capacity("llama-3.1-70b", "h200-sxm-141gb", deployment, work)
    books = lk.ledger("llama-3.1-70b", "h200-sxm-141gb", deployment, work)
    assert int(room.max_concurrency()) == books.max_concurrency


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm", "transformers", "llama.cpp"])
def test_ledger_and_pool_use_one_meaning_of_the_memory_fraction(engine: str) -> None:
    deployment = lk.Deployment(engine=engine, kv_dtype="fp16")
    work = lk.Workload(prompt_tokens=4000, output_tokens=96)
    books = lk.ledger("llama-3.1-8b", "h100-sxm-80gb", deployment, work)
    room = lk.capacity("llama-3.1-8b", "h100-sxm-80gb", deployment)
    weights = books.model.weight_bytes
    assert books.capacity_bytes - weights - 2e9 == pytest.approx(room.pool_bytes.mid, rel=1e-9)


@pytest.mark.parametrize("pool", [0, -1, float("nan"), float("inf")])
def test_a_pool_that_is_no_size_is_refused(pool: float) -> None:
    with pytest.raises(CapacityError, match="pool_bytes"):
        lk.capacity("llama-3.1-8b", "h100-sxm-80gb", pool_bytes=pool)


@pytest.mark.parametrize("model", ["gemma-3-4b-it", "gpt-oss-20b", "qwen3.5-35b-a3b"])
def test_a_pool_that_no_source_divides_is_refused_and_the_ledger_says_so(model: str) -> None:
    layout = lk.Deployment(engine="tensorrt-llm")
    with pytest.raises(CapacityError, match="is not known") as error:
        lk.capacity(model, "h100-sxm-80gb", layout)
    assert "cache_bytes" in str(error.value)
    work = lk.Workload(prompt_tokens=100, output_tokens=10)
    notes = lk.ledger(model, "h100-sxm-80gb", layout, work).notes
    assert any("TensorRT-LLM shares its pool" in note for note in notes)
    assert "显存池" in "".join(note_in(note, "zh") for note in notes)
    vllm = lk.ledger(model, "h100-sxm-80gb", lk.Deployment(), work).notes
    assert not any("shares its pool" in note for note in vllm)
    assert lk.capacity("deepseek-v3", "h200-sxm-141gb", layout.model_copy(update={"tp": 8}))


def test_pages_that_cannot_be_unified_are_refused() -> None:
    kinds = [LayerKind("full", 4, 96.0), LayerKind("window", 4, 64.0, 128)]
    with pytest.raises(CapacityError, match="do not divide"):
        page_plan(kinds, 16)


@given(
    slug=st.sampled_from(["gpt-oss-20b", "gemma-3-4b-it", "qwen3.5-35b-a3b", "llama-3.2-1b"]),
    tokens=st.integers(1, 100_000),
    pool=st.floats(2e9, 200e9),
)
def test_blocks_hold_what_they_promise(slug: str, tokens: int, pool: float) -> None:
    room = lk.capacity(slug, "h200-sxm-141gb", pool_bytes=pool)
    assert room.reserved_bytes(tokens) >= room.ideal_bytes(tokens) - 1e-6
    longest = room.resident_tokens
    assert room.plan.blocks_of(max(1, longest), room._batched) <= max(room.num_blocks, 1) or (
        longest == 0
    )
    assert room.plan.blocks_of(longest + 1, room._batched) > room.num_blocks


def test_every_built_in_model_has_cache_layers() -> None:
    for slug in lk.models()["slug"]:
        model = lk.load_model(slug)
        kinds = layer_kinds(model, lk.Deployment())
        assert sum(kind.sequence_bytes(1000) for kind in kinds) == pytest.approx(
            model.cache_bytes(1000), rel=2e-3
        )
        try:
            room = lk.capacity(model, "h200-sxm-141gb")
        except LedgerError:
            continue
        assert room.block_bytes > 0 or room.plan.block == 1 or room.ideal_bytes(1) == 0


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_compressed_layers_have_no_known_place_in_a_pool(engine: str) -> None:
    layout = lk.Deployment(tp=8, engine=engine, kv_dtype="fp8")
    with pytest.raises(CapacityError, match="compressed attention is not known"):
        lk.capacity("deepseek-v4-pro", "b200-sxm-180gb", layout)
    work = lk.Workload(prompt_tokens=100, output_tokens=10)
    notes = lk.ledger("deepseek-v4-pro", "b200-sxm-180gb", layout, work).notes
    assert any("shares its pool" in note for note in notes)


def test_groups_that_do_not_divide_are_told() -> None:
    model = lk.load_model("granite-4.0-h-tiny")
    work = lk.Workload(prompt_tokens=100, output_tokens=10)
    notes = lk.ledger(model, "h100-sxm-80gb", lk.Deployment(tp=4), work).notes
    assert any("1 groups of B and C on tp = 4 ranks" in note for note in notes)
    assert not any("groups of B" in n for n in lk.ledger(model, "h100-sxm-80gb", None, work).notes)
