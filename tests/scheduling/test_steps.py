"""Mixed and verifying steps on the cost table, against the worked example of an 8B model.

Its efficiencies are passed in: 0.7 of the arithmetic and 0.8 of the memory rate of an H100, and
2 microseconds for each of 290 launches. It counts no activation traffic, so neither does the table.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ledgerkit as lk
from ledgerkit._scheduling.steps import draft_of_mtp, mixed_s, verify_s
from ledgerkit.catalog.engines import load_engine
from ledgerkit.costs import scheduling as s
from ledgerkit.costs.table import build
from ledgerkit.errors import DeploymentError
from ledgerkit.spec.hardware import Hardware
from tests.costs import world

H100 = Hardware(slug="h100", memory_bytes=80_000_000_000, memory_bytes_per_s=3.35e12,
                peak_flop_per_s={"bf16": 989e12})  # fmt: skip


def table_of(slug, launches_s):
    table = build(
        lk.load_model(slug), lk.Deployment(), H100,
        world.efficiencies(0.7, 0.8, host_step_s=launches_s), load_engine("vllm"),
    )  # fmt: skip
    kept = np.array([operation.name != "activations" for operation in table.operations])
    return replace(
        table,
        operations=tuple(op for op, keep in zip(table.operations, kept, strict=True) if keep),
        ops={edge: rows[:, kept] for edge, rows in table.ops.items()},
    )


@pytest.fixture(scope="module")
def large():
    return table_of("llama-3.1-8b", 290 * 2e-6)


@pytest.fixture(scope="module")
def small():
    return table_of("llama-3.2-1b", 145 * 2e-6)


@pytest.mark.parametrize(
    ("chunk", "between_tokens_ms", "prompt_ms", "added_ms"),
    [
        (256, 10.9, 347, 45), (512, 16.8, 269, 118), (1024, 28.7, 230, 154), (2048, 52.5, 210, 172),
        (8192, 195, 196, 186),
    ],
)  # fmt: skip
def test_chunks_of_a_prompt_among_32_sequences(
    large, chunk, between_tokens_ms, prompt_ms, added_ms
):
    steps = [
        mixed_s(large, chunk_tokens=chunk, past_tokens=past, sequences=32, context=2048)
        for past in range(0, 8192, chunk)
    ]
    total_ms = sum(steps) * 1e3
    assert total_ms / len(steps) == pytest.approx(between_tokens_ms, rel=0.01)
    assert total_ms == pytest.approx(prompt_ms, rel=0.005)
    # beyond the decode steps that run anyway: small chunks ride in idle tensor cores
    without = len(steps) * verify_s(large, 2048, 32) * 1e3
    assert total_ms - without == pytest.approx(added_ms, rel=0.01)


def gain(large, small, sequences, context):
    return s.speculative_decoding(
        acceptance=0.75, draft_tokens=4, step_s=verify_s(large, context, sequences),
        verify_s=verify_s(large, context, sequences, 5),
        draft_step_s=verify_s(small, context, sequences),
    ).speedup  # fmt: skip


@pytest.mark.parametrize(
    ("context", "sequences", "expected"),
    [(1024, 1, 1.75), (1024, 128, 1.22), (1024, 256, 1.01), (8192, 32, 1.58), (8192, 64, 1.54),
     (8192, 256, 1.40)],
)  # fmt: skip
def test_drafting_for_an_8b_model(large, small, context, sequences, expected):
    # the 1B draft of the example is not named; Llama-3.2-1B is 1.24B
    assert gain(large, small, sequences, context) == pytest.approx(expected, rel=0.04)


def test_drafting_stops_paying_where_arithmetic_binds(large, small):
    short, long = (
        s.crossover(lambda b, c=context: gain(large, small, b, c), 2048) for context in (1024, 8192)
    )
    assert 128 < short < 320
    # the cache is read once for all query tokens, so long contexts pay for longer
    assert long is None or long > 2 * short


def test_a_plain_decode_step_is_that_of_the_ledger():
    books = lk.ledger(
        "deepseek-v3", "h200-sxm-141gb", lk.Deployment(tp=8),
        lk.Workload(prompt_tokens=4096, output_tokens=2, concurrency=16),
    )  # fmt: skip
    assert verify_s(books._table, 4097, 16) == pytest.approx(books.tpot_s, rel=1e-12)


def test_pipeline_stages_take_micro_batches():
    for many in (3, 16):
        books = lk.ledger(
            "llama-3.1-70b", "h200-sxm-141gb", lk.Deployment(tp=2, pp=4),
            lk.Workload(prompt_tokens=4096, output_tokens=2, concurrency=many),
        )  # fmt: skip
        assert verify_s(books._table, 4097, many) == pytest.approx(books.tpot_s, rel=1e-12)
    with pytest.raises(DeploymentError, match="pipeline stages"):
        mixed_s(books._table, chunk_tokens=64, past_tokens=0, sequences=1, context=64)


def test_a_mixed_step_costs_more_than_either_part_and_less_than_both(large):
    alone = mixed_s(large, chunk_tokens=512, past_tokens=0, sequences=0, context=1)
    both = mixed_s(large, chunk_tokens=512, past_tokens=0, sequences=32, context=2048)
    decode = verify_s(large, 2048, 32)
    assert max(alone, decode) < both < alone + decode


def test_an_mtp_block_is_a_model_of_one_layer():
    model = lk.load_model("deepseek-v3")
    draft = draft_of_mtp(model)
    assert draft is not None
    assert draft.num_hidden_layers == 1
    shared = sum(weight.elements for weight in model.globals)
    assert draft.parameter_count - shared == 11_610_067_968 + 256  # the router's bias buffer
    assert draft_of_mtp(lk.load_model("llama-3.1-8b")) is None
