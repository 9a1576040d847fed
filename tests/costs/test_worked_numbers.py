"""Numbers that can be worked out on paper, as literals."""

from __future__ import annotations

import math

import pytest

from ledgerkit.costs.attention_latent import absorbed_flop_per_pair, expanded_flop_per_pair
from ledgerkit.costs.communication import distinct_ranks
from ledgerkit.costs.launches import step_kernels
from ledgerkit.kernels import step as kernels
from ledgerkit.spec.deployment import Deployment
from tests.costs import world
from tests.costs.world import amount

KI = 1024
ONE_CHUNK = Deployment(max_num_batched_tokens=1 << 20)


# counting --------------------------------------------------------------------------------------


def test_pairs_of_a_prompt():
    assert kernels.pairs(8192.0, 0.0, math.inf, 0.0) == 33_558_528
    assert kernels.pairs(8192.0, 0.0, 1024.0, 0.0) == 7_864_832


def test_distinct_experts_of_256_with_8_per_token():
    expected = {1: 8, 2: 15.75, 4: 30.5, 8: 57.4, 16: 102, 32: 163.3, 64: 222.4, 128: 251.6}
    log_miss = math.log(1 - 8 / 256)
    for tokens, experts in expected.items():
        assert kernels.distinct(float(tokens), 256.0, log_miss) == pytest.approx(experts, abs=0.06)
    # half of all experts, and nine tenths of them
    for experts, per_token, half, most in (
        (8, 2, 2.4, 8), (256, 8, 21.8, 72.5), (128, 8, 10.7, 35.7), (512, 10, 35, 117),
        (896, 16, 38.5, 128),
    ):  # fmt: skip
        miss = math.log(1 - per_token / experts)
        assert kernels.distinct(half, experts, miss) / experts == pytest.approx(0.5, abs=0.01)
        assert kernels.distinct(most, experts, miss) / experts == pytest.approx(0.9, abs=0.004)


def test_ranks_that_hold_an_expert_of_a_token():
    found = [distinct_ranks(ranks, 256, 8) for ranks in (8, 16, 32, 64)]
    assert found == pytest.approx([5.29, 6.52, 7.27, 7.68], abs=0.005)


def test_kernels_of_a_step(llama, deepseek):
    assert step_kernels(llama, Deployment()) == 32 * 10
    assert step_kernels(deepseek, Deployment()) == 61 * 13 + 3 * 6 + 58 * (11 + 4)
    assert step_kernels(world.model(world.GPT_OSS), Deployment()) == 36 * (6 + 9)
    assert step_kernels(world.model(world.GEMMA4_MOE), Deployment()) == 30 * (7 + 9 + 4)
    assert step_kernels(world.recurrent(), Deployment()) == 32 * (8 + 4)
    # fp8 blocks by choice of the deployment
    assert step_kernels(llama, Deployment(weights="fp8_block128")) == 32 * (8 + 6)


# prefill ---------------------------------------------------------------------------------------


def test_llama_prefill(llama):
    books = world.books_of(llama, prompt_tokens=8192)
    linear = amount(books, "prefill", "compute", account="projections")
    linear += amount(books, "prefill", "compute", account="dense")
    core = amount(books, "prefill", "compute", account="core")
    assert linear / 1e12 == pytest.approx(114.35, abs=0.005)
    assert core / 1e12 == pytest.approx(17.59, abs=0.005)
    # the head works on the one position that is sampled
    assert amount(books, "prefill", "compute", op="lm_head") == 2 * 128256 * 4096
    assert core / books.total("prefill", "compute") == pytest.approx(0.133, abs=0.0005)


@pytest.mark.parametrize(("tokens", "share"), [(32 * KI, 0.381), (128 * KI - 2, 0.711)])
def test_share_of_attention_in_prefill(llama, tokens, share):
    books = world.books_of(llama, prompt_tokens=tokens)
    core = amount(books, "prefill", "compute", account="core")
    assert core / books.total("prefill", "compute") == pytest.approx(share, abs=0.0005)


def test_two_flop_per_parameter_is_wrong_by(llama):
    for tokens, error in ((KI, 0.129), (8 * KI, -0.003), (32 * KI, -0.288), (128 * KI - 2, -0.668)):
        books = world.books_of(llama, prompt_tokens=tokens)
        simple = 2.0 * llama.parameter_count * tokens
        assert simple / books.total("prefill", "compute") - 1 == pytest.approx(error, abs=0.001)


def test_chunks_expand_the_latents_again(deepseek):
    def expansion(chunk):
        books = world.books_of(
            deepseek, Deployment(max_num_batched_tokens=chunk), prompt_tokens=32 * KI
        )
        return amount(books, "prefill", "compute", op="latent_expansion")

    assert expansion(32 * KI) / 1e12 == pytest.approx(67, abs=0.5)
    assert expansion(2 * KI) / 1e12 == pytest.approx(570, abs=0.5)
    core = amount(world.books_of(deepseek, prompt_tokens=32 * KI), "prefill", "compute",
                  op="latent_attention")  # fmt: skip
    assert core / 1e12 == pytest.approx(2683, abs=0.5)


def test_chunks_read_cache_and_weights_again(llama):
    whole = world.books_of(llama, ONE_CHUNK, prompt_tokens=32 * KI)
    small = world.books_of(llama, Deployment(max_num_batched_tokens=512), prompt_tokens=32 * KI)
    extra = amount(small, "prefill", "read", account="cache")
    extra -= amount(whole, "prefill", "read", account="cache")
    assert extra / 1e9 == pytest.approx(135, abs=0.5)
    # 64 chunks; the head is read with the last one only
    layers = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 14336) * 2
    weights = amount(small, "prefill", "read", account="projections")
    weights += amount(small, "prefill", "read", account="dense")
    assert weights == 64 * layers
    assert amount(small, "prefill", "read", op="lm_head") == 128256 * 4096 * 2


def test_a_cached_prefix_is_not_computed_again(llama):
    books = world.books_of(llama, prompt_tokens=8192, cached_tokens=7168)
    new = world.books_of(llama, prompt_tokens=1024)
    for account in ("projections", "dense"):
        assert amount(books, "prefill", "compute", account=account) == amount(
            new, "prefill", "compute", account=account
        )
    pairs = 1024 * 7168 + 1024 * 1025 / 2
    assert amount(books, "prefill", "compute", account="core") == 32 * 4 * 32 * 128 * pairs
    # 87.5 % of the tokens save 76.6 % of the attention
    saved = 7168**2 / 8192**2
    assert saved == pytest.approx(0.766, abs=0.0005)
    assert pairs / 33_558_528 == pytest.approx(1 - saved, abs=0.0005)


# decode ----------------------------------------------------------------------------------------


def test_latent_attention_per_pair(deepseek):
    attention = deepseek.groups[0].attention
    assert absorbed_flop_per_pair(attention) == 278_528
    assert expanded_flop_per_pair(attention) == 81_920
    # queries at which expanding the latents pays: 170.7
    per_token = 2 * 512 * 128 * (128 + 128)
    difference = absorbed_flop_per_pair(attention) - expanded_flop_per_pair(attention)
    assert per_token / difference == pytest.approx(170.7, abs=0.05)


def test_llama_decode_step_by_account(llama):
    """32 sequences at 8,448 tokens: every number from the config by hand."""
    books = world.books_of(llama, prompt_tokens=8192, output_tokens=512, concurrency=32)
    projections, dense = 2 * 4096**2 + 2 * 1024 * 4096, 3 * 4096 * 14336
    reads = {
        "projections": 32 * projections * 2,
        "dense": 32 * dense * 2,
        "cache": 32 * 32 * 8448 * 4096,
        # head and final norm; one row per token; logits twice
        "vocab": (128256 * 4096 + 4096) * 2 + 32 * 4096 * 2 + 32 * 128256 * 4 * 2,
    }
    flops = {
        "projections": 32 * 2 * projections * 32,
        "dense": 32 * 2 * dense * 32,
        "core": 32 * 32 * 8448 * 2 * 32 * 256,
        "vocab": 2 * 128256 * 4096 * 32,
    }
    writes = {"cache": 32 * 32 * 4096, "vocab": 32 * 128256 * 4}
    for resource, expected in (("read", reads), ("compute", flops), ("write", writes)):
        for account, value in expected.items():
            assert amount(books, "decode", resource, account=account) == value
    # norms of the layers, and 4 passes in each direction over the hidden state per layer
    assert amount(books, "decode", "read", account="norms") == 64 * 4096 * 2 + 32 * 4 * 32 * 8192
    assert amount(books, "decode", "write", account="norms") == 32 * 4 * 32 * 8192
    total = math.fsum(reads.values()) + 64 * 4096 * 2 + 32 * 4 * 32 * 8192
    assert books.total("decode", "read") == total
    assert books.total("decode", "compute") == math.fsum(flops.values())


def test_bytes_and_flop_of_an_ideal_step(llama):
    """Sum of maxima, one operation at a time: 1e15 FLOP/s, 5e12 B/s."""
    books = world.books_of(
        llama, fractions=world.IDEAL, prompt_tokens=8192, output_tokens=512, concurrency=512
    )
    projections, dense = 2 * 4096**2 + 2 * 1024 * 4096, 3 * 4096 * 14336
    operations = [
        (32, 2 * projections * 512, projections * 2),
        (32, 2 * dense * 512, dense * 2),
        (32, 512 * 8448 * 2 * 32 * 256, 512 * (8448 + 1) * 4096),
        (64, 0, 4096 * 2),
        (64, 0, 4 * 512 * 8192),
        (1, 2 * 128256 * 4096 * 512, 128256 * 4096 * 2),
        (1, 0, 4096 * 2),
        (1, 0, 512 * 8192),
        (1, 0, 3 * 512 * 128256 * 4),
    ]
    seconds = math.fsum(n * max(flop / 1e15, size / 5e12) for n, flop, size in operations)
    assert books.tpot_s == pytest.approx(seconds, rel=1e-12)
    # the linear layers are bound by arithmetic at 512 tokens, attention by bytes
    assert amount(books, "decode", "time", account="core") == 0
    assert amount(books, "decode", "time", account="dense") == pytest.approx(
        32 * 2 * dense * 512 / 1e15
    )


def test_bytes_per_step_of_deepseek(deepseek):
    one = world.books_of(deepseek)
    many = world.books_of(deepseek, concurrency=32)
    assert amount(one, "decode", "read", account="routed_experts") / 1e9 == pytest.approx(
        20.4, abs=0.05
    )
    assert amount(many, "decode", "read", account="routed_experts") / 1e9 == pytest.approx(
        417, abs=0.5
    )
    # all other weights: with the head in bf16, as the checkpoint has it, 17.2 GB
    other = [
        amount(many, "decode", "read", account=account)
        for account in ("projections", "dense", "shared_experts", "router")
    ]
    other.append(amount(many, "decode", "read", op="lm_head"))
    assert math.fsum(other) / 1e9 == pytest.approx(17.2, abs=0.05)


@pytest.mark.parametrize(
    ("config", "deployment", "intensity"),
    [
        (world.DEEPSEEK_V3, {}, 242),
        (world.DEEPSEEK_V3, {"kv_dtype": "fp8_ds_mla"}, 425),
        (world.LLAMA_70B, {}, 8),
        ({**world.LLAMA_8B, "num_key_value_heads": 32}, {}, 1),
    ],
)
def test_flop_per_byte_of_decode_attention(config, deployment, intensity):
    books = world.books_of(world.model(config), Deployment(**deployment), prompt_tokens=100_000)
    flop = amount(books, "decode", "compute", account="core")
    assert flop / amount(books, "decode", "read", account="cache") == pytest.approx(
        intensity, abs=0.5
    )


# bases and prices ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "concurrency", "phase", "resource", "basis"),
    [
        ({}, 1, "decode", "read", "exact"),
        ({}, 2, "decode", "read", "estimated"),
        ({}, 2, "decode", "compute", "exact"),
        ({}, 2, "prefill", "read", "estimated"),
        ({"tp": 8}, 1, "decode", "read", "exact"),
        # which rank holds the experts of a token is assumed, too
        ({"tp": 8, "ep": 8}, 1, "decode", "read", "estimated"),
        ({"tp": 8, "ep": 8}, 1, "decode", "compute", "estimated"),
    ],
)
def test_experts_are_exact_where_no_routing_is_assumed(
    deepseek, layout, concurrency, phase, resource, basis
):
    books = world.books_of(deepseek, Deployment(**layout), concurrency=concurrency)
    found = {
        entry.basis
        for entry in books._entries
        if (entry.phase, entry.resource, entry.account) == (phase, resource, "routed_experts")
    }
    assert found == {basis}


@pytest.mark.parametrize("kv_dtype", ["bf16", "fp8", "int8", "q8_0", "nvfp4", "fp8_per_token_head"])
def test_decode_attention_is_priced_by_the_layout_of_the_cache(llama, kv_dtype):
    """Each layout has an efficiency of its own, and reading caches takes as long as it says."""
    rows = tuple(
        row.model_copy(update={"dtype": kv_dtype, "eta_memory": world.flat(0.25)})
        for row in world.IDEAL.ops
        if (row.op_class, row.dtype) == ("attention_decode", "bf16")
    )
    fractions = world.IDEAL.model_copy(update={"ops": (*rows, *world.IDEAL.ops)})
    books = world.books_of(llama, Deployment(kv_dtype=kv_dtype), fractions=fractions,
                           prompt_tokens=50_000)  # fmt: skip
    moved = math.fsum(
        amount(books, "decode", resource, account="cache") for resource in ("read", "write")
    )
    assert amount(books, "decode", "time", account="cache") == pytest.approx(moved / 5e12 / 0.25)
    assert not books.notes
