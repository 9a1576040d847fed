"""Pipeline stages: the busiest device is a real one, and micro-batches are those that exist."""

from __future__ import annotations

import math

import pytest

from ledgerkit.costs.stages import busiest_stage, stages
from ledgerkit.spec.deployment import Deployment
from tests.costs import world

LAYERS_ONLY = ("cache", "core", "projections", "dense")


def amount(books, phase, resource, account, column="amount_device"):
    return math.fsum(
        getattr(entry, column) or 0.0
        for entry in books._entries
        if (entry.phase, entry.resource, entry.account) == (phase, resource, account)
    )


def test_stages_hold_all_layers_once():
    model = world.model(world.DEEPSEEK_V3)
    found = stages(model, Deployment(pp=4))
    assert [len(stage.layers) for stage in found] == [15, 15, 16, 15]
    assert [layer for stage in found for layer in stage.layers] == list(range(61))
    assert [(stage.is_first, stage.is_last) for stage in found] == [
        (True, False), (False, False), (False, False), (False, True),
    ]  # fmt: skip


def test_a_large_head_makes_the_last_stage_the_busiest():
    # a layer holds 218 M elements, the head 525 M
    few = world.model(world.LLAMA_8B, num_hidden_layers=5)
    assert busiest_stage(few, Deployment(pp=2)).layers == range(3, 5)
    # 1,024 words: the stage with one layer more
    small = world.model(world.LLAMA_8B, num_hidden_layers=5, vocab_size=1024)
    assert busiest_stage(small, Deployment(pp=2)).layers == range(3)


def test_the_busiest_device_of_deepseek_has_no_dense_layers():
    books = world.books_of(world.model(world.DEEPSEEK_V3), Deployment(pp=4, tp=8))
    assert amount(books, "decode", "read", "dense") == 0
    assert amount(books, "decode", "read", "dense", "amount_replica") == pytest.approx(
        3 * 3 * (7168 * 18432 + 56 * 144 * 4)
    )


@pytest.mark.parametrize("resource", ["compute", "read", "write"])
@pytest.mark.parametrize("account", LAYERS_ONLY)
def test_a_stage_pays_for_its_layers_once_per_micro_batch(resource, account):
    whole = world.model(world.LLAMA_8B)
    half = world.model(world.LLAMA_8B, num_hidden_layers=16)
    piped = world.books_of(whole, Deployment(pp=2), concurrency=8)
    alone = world.books_of(half, concurrency=4)
    assert amount(piped, "decode", resource, account) == pytest.approx(
        2 * amount(alone, "decode", resource, account)
    )
    first = world.books_of(half)
    assert amount(piped, "prefill", resource, account) == amount(
        first, "prefill", resource, account
    )


def test_one_sequence_is_one_micro_batch():
    model = world.model(world.LLAMA_8B)
    one = world.books_of(model)
    piped = world.books_of(model, Deployment(pp=4))
    # each stage reads its weights once for the only sequence
    assert amount(piped, "decode", "read", "dense") == pytest.approx(
        amount(one, "decode", "read", "dense") / 4
    )
    assert amount(piped, "decode", "read", "dense", "amount_replica") == pytest.approx(
        amount(one, "decode", "read", "dense", "amount_replica")
    )


def test_a_step_of_full_stages_takes_as_long_as_the_busiest_stage_for_each_micro_batch():
    # 33 layers over 2 stages: 17 and 16, and a vocabulary too small to matter
    model = world.model(world.LLAMA_8B, num_hidden_layers=33, vocab_size=64)
    piped = world.books_of(model, Deployment(pp=2), fractions=world.IDEAL, concurrency=64)
    alone = world.books_of(
        world.model(world.LLAMA_8B, num_hidden_layers=17, vocab_size=64),
        fractions=world.IDEAL, concurrency=32,
    )  # fmt: skip
    sends = amount(piped, "decode", "communicate", "pp") / 2 / world.RACK.scaleup_bytes_per_s
    assert piped.tpot_s - sends == pytest.approx(2 * alone.tpot_s, rel=1e-3)
    # one sequence waits for nobody
    single = world.books_of(model, Deployment(pp=2), fractions=world.IDEAL)
    assert amount(single, "decode", "time", "pp") == pytest.approx(8192 / 450e9)


def test_pipelines_of_unequal_stages_have_no_copies():
    for pp in (2, 3, 5):
        books = world.books_of(world.model(world.LLAMA_8B, num_hidden_layers=7), Deployment(pp=pp),
                               concurrency=7)  # fmt: skip
        assert not [e for e in books._entries if e.op.endswith("copies") and e.phase != "hold"]


def test_copies_of_a_tensor_parallel_pipeline_are_those_of_one_stage():
    model = world.model(world.DEEPSEEK_V3)
    for phase, work in (("prefill", {}), ("decode", {"concurrency": 2})):
        flat = world.books_of(model, Deployment(tp=8), **{k: v // 2 for k, v in work.items()})
        piped = world.books_of(model, Deployment(tp=8, pp=2), **work)
        for resource in ("compute", "read", "write"):
            expected = amount(flat, phase, resource, "tp", "amount_replica")
            batches = 2 if phase == "decode" else 1
            assert expected > 0
            assert amount(piped, phase, resource, "tp", "amount_replica") == pytest.approx(
                batches * expected
            )
