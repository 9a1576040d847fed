"""Sparse attention: where it pays, and what it keeps."""

from __future__ import annotations

import math

import pytest

import ledgerkit as lk
from ledgerkit.costs.attention_compressed import compressed_operations
from ledgerkit.spec.deployment import Deployment
from tests.costs import world
from tests.costs.world import amount, per_token

KI = 1024


# sparse attention ------------------------------------------------------------------------------


def first(condition, low, high):
    """Smallest number for which a condition holds that stays true."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if condition(middle) else (middle + 1, high)
    return low


def attention_amount(model, phase, resource, tokens, names, **deployment):
    """Amount of the named operations of the attention ledger at this context."""
    setup = Deployment(max_num_batched_tokens=1 << 20, **deployment)
    books = world.books_of(model, setup, prompt_tokens=tokens, output_tokens=1)
    return math.fsum(
        entry.amount_device for entry in books._entries
        if (entry.phase, entry.resource) == (phase, resource) and entry.op in names
    )  # fmt: skip


SPARSE, DENSE = ("sparse_latent_attention", "indexer"), ("latent_attention",)


def scores_only(model, phase, tokens):
    """FLOP of core and index scores: the indexer's projections left out."""
    setup = Deployment(max_num_batched_tokens=1 << 20)
    books = world.books_of(model, setup, prompt_tokens=tokens, output_tokens=1)
    projections = 2 * 61 * (64 * 128 * 1536 + 128 * 7168 + 64 * 7168)
    projections *= tokens if phase == "prefill" else 1
    every = [
        entry.amount_device
        for entry in books._entries
        if (entry.phase, entry.resource) == (phase, "compute") and entry.op in SPARSE
    ]
    return math.fsum(every) - projections


def test_sparse_prefill_pays_beyond(sparse, deepseek):
    def pays(tokens):
        return scores_only(sparse, "prefill", tokens) <= attention_amount(
            deepseek, "prefill", "compute", tokens, DENSE
        )

    assert first(pays, 2048, 60_000) == 16_350


def test_sparse_decode_pays_beyond(sparse, deepseek):
    def scores(tokens):
        return scores_only(sparse, "decode", tokens) < attention_amount(
            deepseek, "decode", "compute", tokens, DENSE
        )

    def whole(tokens):
        return attention_amount(sparse, "decode", "compute", tokens, SPARSE) < attention_amount(
            deepseek, "decode", "compute", tokens, DENSE
        )

    assert first(scores, 1, 60_000) == 2_178
    assert first(whole, 1, 60_000) == 2_284


def test_sparse_decode_reads_less_beyond(sparse, deepseek):
    layout = {"kv_dtype": "fp8_ds_mla"}
    weights = 61 * (64 * 128 * 1536 + 128 * 7168 + 64 * 7168 + 3 * 4 + 256 * 2)

    def reads(tokens, extra):
        found = attention_amount(sparse, "decode", "read", tokens, SPARSE, **layout) - weights
        return found + extra < attention_amount(deepseek, "decode", "read", tokens, DENSE, **layout)

    assert first(lambda tokens: reads(tokens, 0), 1, 60_000) == 2_564
    assert first(lambda tokens: reads(tokens, weights), 1, 60_000) == pytest.approx(29_204, abs=3)


def test_sparse_attention_at_128_ki(sparse, deepseek):
    tokens, layout = 128 * KI, {"kv_dtype": "fp8_ds_mla"}
    flop = scores_only(sparse, "decode", tokens)
    dense = attention_amount(deepseek, "decode", "compute", tokens, DENSE)
    assert dense / flop == pytest.approx(13.3, abs=0.06)
    weights = 61 * (64 * 128 * 1536 + 128 * 7168 + 64 * 7168 + 3 * 4 + 256 * 2)
    read = attention_amount(sparse, "decode", "read", tokens, SPARSE, **layout) - weights
    dense = attention_amount(deepseek, "decode", "read", tokens, DENSE, **layout)
    assert dense / read == pytest.approx(4.6, abs=0.02)
    held, plain = (
        per_token(world.books_of(model, Deployment(**layout)), "amount_device")
        for model in (sparse, deepseek)
    )
    assert (held, plain) == (48_068, 40_016)
    assert held / plain == pytest.approx(1.201, abs=0.0005)


def test_sparse_prefill_attends_to_latents_and_expands_none(sparse):
    """Each query folds the up-projection in, as in decoding: chunks expand nothing again."""
    for chunk in (512, 8192):
        books = world.books_of(sparse, Deployment(max_num_batched_tokens=chunk), prompt_tokens=8192)
        assert amount(books, "prefill", "compute", op="latent_expansion") == (
            61 * 2 * 512 * 128 * 256 * 8192
        )


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_index_scores_are_multiplied_in_the_dtype_of_the_keys(sparse, phase):
    """1e15 FLOP/s in bf16, 2e15 in fp8; memory so fast that arithmetic binds."""
    device = world.RACK.model_copy(update={"memory_bytes_per_s": 1e18})
    pairs = 4096 * 4097 / 2 if phase == "prefill" else 4096
    for kv_dtype, peak in (("bf16", 1e15), ("fp8_ds_mla", 2e15)):
        books = world.books_of(sparse, Deployment(kv_dtype=kv_dtype), device, world.IDEAL,
                               prompt_tokens=4096, output_tokens=1)  # fmt: skip
        scores = min(
            entry.amount_device
            for entry in books._entries
            if (entry.phase, entry.resource, entry.op) == (phase, "time", "indexer")
            and "flop_per_pair" in entry.formula.expression
        )
        assert scores == pytest.approx(61 * 16_512 * pairs / peak)


@pytest.mark.parametrize(
    ("kv_dtype", "bytes_per_token"), [("bf16", 85_888), ("fp8_ds_mla", 48_068)]
)
def test_resident_bytes_of_a_sparse_token(sparse, kv_dtype, bytes_per_token):
    assert per_token(world.books_of(sparse, Deployment(kv_dtype=kv_dtype)), "amount_device") == (
        bytes_per_token
    )


@pytest.mark.parametrize(("index", "width"), [(True, 2 * (512 + 128)), (False, 512)])
def test_compressors_write_each_token_once_and_read_it_once(index: bool, width: int) -> None:
    """V4-Pro: values and gates in fp32; windows of 4 tokens overlap, those of 128 do not."""
    model = lk.load_model("deepseek-v4-pro")
    group = next(
        g for g in model.groups if g.attention.ratio and bool(g.attention.indexer) is index
    )
    found = [
        op for op in compressed_operations(group.attention, 1, Deployment(tp=8))
        if op.name == "compressor"
    ]  # fmt: skip
    assert len(found) == 1
    share = found[0].decode
    assert share.device.write_per_token == share.device.read_per_token == 2 * width * 4
    assert share.once.write_per_token == share.device.write_per_token / 8  # a copy on each rank
    state = share.device.write_per_token * group.attention.ratio
    assert found[0].prefill.device.write_per_sequence == state
