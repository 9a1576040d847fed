"""Numbers that can be worked out on paper, as literals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ledgerkit.costs.attention_latent import absorbed_flop_per_pair, expanded_flop_per_pair
from ledgerkit.costs.attention_state import decode_flop_per_token, prefill_flop_per_token
from ledgerkit.costs.communication import distinct_ranks
from ledgerkit.costs.launches import step_kernels
from ledgerkit.kernels import step as kernels
from ledgerkit.spec.attention import StateAttention
from ledgerkit.spec.deployment import Deployment
from tests.costs import world

KI = 1024
ONE_CHUNK = Deployment(max_num_batched_tokens=1 << 20)


def amount(books, phase, resource, *, account=None, op=None, column="amount_device"):
    """Sum of the entries that match."""
    return math.fsum(
        getattr(entry, column) or 0.0
        for entry in books._entries
        if (entry.phase, entry.resource) == (phase, resource)
        and account in (None, entry.account)
        and op in (None, entry.op)
    )


@pytest.fixture(scope="module")
def llama():
    return world.model(world.LLAMA_8B)


@pytest.fixture(scope="module")
def deepseek():
    return world.model(world.DEEPSEEK_V3)


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


# layouts ---------------------------------------------------------------------------------------


def per_token(books, column):
    """Resident cache bytes of one token."""
    total = math.fsum(
        getattr(entry, column) for entry in books._entries
        if entry.phase == "hold" and entry.op.removesuffix(" copies") in
        ("latents", "keys_and_values", "index_keys")
    )  # fmt: skip
    return total / books.workload.hold_context / books.workload.concurrency


def test_more_ranks_than_kv_heads_hold_copies():
    books = world.books_of(world.model(world.LLAMA_70B), Deployment(tp=16))
    assert per_token(books, "amount_device") == 40_960
    assert per_token(books, "amount_replica") == 16 * 40_960 == 2 * 327_680
    read = amount(books, "decode", "read", account="cache") / books.workload.decode_context
    assert read == 40_960
    # half of what the cluster holds and reads is the layout's doing
    copies = amount(books, "decode", "read", op="full_attention copies", column="amount_replica")
    assert copies == amount(books, "decode", "read", account="cache", column="amount_replica")


def test_the_latent_is_whole_on_every_rank(deepseek):
    shared = world.books_of(deepseek, Deployment(tp=8))
    split = world.books_of(deepseek, Deployment(dp_attention=8, ep=8), concurrency=8)
    assert per_token(shared, "amount_device") == 70_272
    assert per_token(shared, "amount_replica") == 562_176
    assert per_token(split, "amount_replica") == 70_272
    assert amount(shared, "hold", "resident", op="latents copies", column="amount_replica") == (
        7 * 70_272 * shared.workload.hold_context
    )


def reduce_table(domain_ranks, message_bytes):
    """Bytes that one all-reduce of 3 µs latencies at 450 GB/s moves on a rank."""
    from ledgerkit.kernels import columns as c

    row = np.zeros((1, c.LINK_COLUMNS))
    row[0, [c.L_COUNT, c.L_AMOUNT_COUNT]] = 1
    row[0, c.L_KIND], row[0, c.L_RANKS] = c.KIND_ALL_REDUCE, domain_ranks
    row[0, c.L_TOKEN_BYTES], row[0, c.L_S_PER_BYTE] = message_bytes, 1 / 450e9
    row[0, c.L_ALPHA], row[0, c.L_ALPHA_TWO_SHOT] = 6e-6, 3e-6
    sums = np.zeros((0, c.AMOUNTS)), np.zeros((1, c.LINK_AMOUNTS)), np.zeros(c.HOST_AMOUNTS)
    kernels.step(np.zeros((0, c.OP_COLUMNS)), row, np.zeros(c.SCALARS), 1.0, 0.0, 1.0, 1.0, 1.0,
                 1.0, *sums)  # fmt: skip
    return float(sums[1][0, c.C_BYTES])


@pytest.mark.parametrize(("ranks", "crossover"), [(8, 251 * KI), (4, 879 * KI)])
def test_small_messages_are_reduced_in_one_shot(ranks, crossover):
    below, above = 0.99 * crossover, 1.01 * crossover
    assert reduce_table(ranks, below) == pytest.approx((ranks - 1) * below)
    assert reduce_table(ranks, above) == pytest.approx(2 * (ranks - 1) / ranks * above)


def test_all_reduces_of_llama_70b():
    """160 of 512 KiB at 3 µs and 450 GB/s: 1.77 ms."""
    fractions = world.efficiencies(alpha_s=6e-6, alpha_two_shot_s=3e-6)
    books = world.books_of(
        world.model(world.LLAMA_70B), Deployment(tp=8), fractions=fractions, concurrency=32
    )
    assert amount(books, "decode", "steps", account="tp") == 160
    assert amount(books, "decode", "time", account="tp") * 1e3 == pytest.approx(1.77, abs=0.005)
    assert amount(books, "decode", "communicate", account="tp") == 160 * 2 * 7 / 8 * 32 * 8192 * 2


def test_tokens_travel_to_the_ranks_of_their_experts(deepseek):
    books = world.books_of(deepseek, Deployment(dp_attention=8, ep=8), concurrency=64)
    ranks = 8 * (1 - math.comb(224, 8) / math.comb(256, 8))
    assert amount(books, "decode", "communicate", account="ep") == pytest.approx(
        58 * 8 * ranks * 7168 * 3
    )
    # no tensor parallelism, no all-reduce
    assert amount(books, "decode", "communicate", account="tp") == 0


@pytest.mark.parametrize(
    ("layout", "per_token"),
    [
        # each of the two tensor-parallel ranks sends half of what a token needs
        ({"tp": 2, "dp_attention": 4, "ep": 8}, 5.29 * 7168 * 3 / 2),
        # four groups of two devices, each with half of every expert
        ({"tp": 2, "dp_attention": 4, "ep": 4}, 3.614 * 2 * 7168 * 3 / 2),
        # every device has a slice of every expert, and needs every token
        ({"dp_attention": 8}, 8 * 7168 * 3),
        # two ranks: gathering and reducing all tokens in bf16 moves less
        ({"dp_attention": 2}, 2 * 2 * 1 / 2 * 7168 * 2),
    ],
    ids=str,
)
def test_an_exchange_sends_what_the_layout_needs(deepseek, layout, per_token):
    books = world.books_of(deepseek, Deployment(**layout), concurrency=64)
    tokens = 64 / layout["dp_attention"]
    assert amount(books, "decode", "communicate", account="ep") == pytest.approx(
        58 * tokens * per_token, rel=1e-3
    )
    seconds = amount(books, "decode", "time", account="ep")
    alphas = world.REAL.link.alpha_s.mid + world.REAL.link.alpha_two_shot_s.mid
    assert seconds == pytest.approx(58 * (alphas + tokens * per_token / (450e9 * 0.55)), rel=1e-3)


def test_across_domains_latency_is_fourfold_and_the_network_carries():
    fractions = world.efficiencies(alpha_s=1e-6)
    model = world.model(world.LLAMA_70B)
    near = world.books_of(model, Deployment(tp=8), world.DEVICE, fractions)
    far = world.books_of(model, Deployment(tp=16), world.DEVICE, fractions)
    assert {e.link for e in near._entries if e.account == "tp" and e.link} == {"scale-up"}
    assert {e.link for e in far._entries if e.account == "tp" and e.link} == {"scale-out"}
    moved = 15 * 8192 * 2
    two_shot = 2 * 15 / 16 * 8192 * 2
    assert two_shot < moved
    assert amount(far, "decode", "time", account="tp") == pytest.approx(
        160 * (4e-6 + two_shot / 50e9)
    )


# sparse attention ------------------------------------------------------------------------------


def first(condition, low, high):
    """Smallest number for which a condition holds that stays true."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if condition(middle) else (middle + 1, high)
    return low


@pytest.fixture(scope="module")
def sparse():
    return world.sparse()


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


# states ----------------------------------------------------------------------------------------


def test_delta_net_of_qwen3_next():
    net = StateAttention(variant="gated_delta_net", num_heads=32, key_dim=128, value_dim=128,
                         num_groups=16, conv_channels=8192, conv_kernel=4)  # fmt: skip
    assert decode_flop_per_token(net) / 1e6 == pytest.approx(3.67, abs=0.005)
    assert prefill_flop_per_token(net) / 1e6 == pytest.approx(5.77, abs=0.005)
    books = world.books_of(world.recurrent(), concurrency=3)
    held = amount(books, "hold", "resident", account="state")
    assert held == 32 * 3 * 2_146_304
    for resource in ("read", "write"):
        assert amount(books, "decode", resource, account="state") == 32 * 3 * 2_146_304
    longer = world.books_of(world.recurrent(), concurrency=3, prompt_tokens=100_000)
    assert amount(longer, "decode", "read", account="state") == 32 * 3 * 2_146_304


def test_mamba2_recurrence():
    mixer = StateAttention(variant="mamba2", num_heads=64, key_dim=128, value_dim=64, num_groups=8)
    assert decode_flop_per_token(mixer) == 5 * 64 * 64 * 128
    assert prefill_flop_per_token(mixer) == (2 * 256 * 128 * 8 + 64 * (2 * 256 * 64 + 4 * 64 * 128))


# embeddings ------------------------------------------------------------------------------------


def test_per_layer_embeddings_are_held_whole_and_read_by_rows():
    books = world.books_of(world.model(world.GEMMA4_SMALL), concurrency=5)
    table = 262144 * 42 * 256 * 2
    projection = 42 * 256 * 2560 * 2
    layers = 42 * 2 * 256 * 2560 * 2
    assert amount(books, "hold", "resident", account="per_layer_embedding") == (
        table + projection + layers
    )
    assert amount(books, "decode", "read", account="per_layer_embedding") == (
        5 * 42 * 256 * 2 + projection + layers
    )


def test_a_tied_table_is_held_once_and_read_twice():
    books = world.books_of(world.model(world.GEMMA3), concurrency=5)
    table = 262208 * 2560 * 2
    assert amount(books, "hold", "resident", account="vocab") == table + 2560 * 2
    assert amount(books, "decode", "read", op="lm_head") == table
    assert amount(books, "decode", "read", op="embedding") == 5 * 2560 * 2


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_learned_positions_are_looked_up_on_every_rank(tp):
    books = world.books_of(world.model(world.GPT2), Deployment(tp=tp), prompt_tokens=100,
                           concurrency=3)  # fmt: skip
    assert amount(books, "decode", "read", op="embedding") == 3 * 768 * 4 * (1 / tp + 1)
    unique = amount(books, "decode", "read", op="embedding", column="amount_replica")
    assert unique == 3 * 768 * 4 * 2
    held = amount(books, "hold", "resident", account="vocab")
    assert held == (50257 / tp + 1024 + 2) * 768 * 4


def test_shared_caches_are_read_but_not_held():
    model = world.model(world.GEMMA4_SMALL)
    alone = world.model(world.GEMMA4_SMALL, num_kv_shared_layers=0)
    books, plain = (world.books_of(m, prompt_tokens=8192) for m in (model, alone))
    for phase in ("prefill", "decode"):
        for resource, account in (("read", "cache"), ("compute", "core")):
            assert amount(books, phase, resource, account=account) == amount(
                plain, phase, resource, account=account
            )
    # 24 layers own a cache: 20 with windows of 512, 4 full ones
    full, window = 2 * 512 * 2 * 2, 2 * 256 * 2 * 2
    assert amount(books, "hold", "resident", account="cache") == 4 * full * 8194 + 20 * window * 512
    assert amount(books, "decode", "write", account="cache") == 4 * full + 20 * window


def test_values_that_are_keys_are_cached_but_not_projected():
    books = world.books_of(world.model(world.GEMMA4_MOE), prompt_tokens=8192)
    # 25 window layers of 8 heads of 256, 5 full ones of 2 heads of 512, keys and values kept
    assert amount(books, "decode", "read", account="cache") == (
        25 * 8 * 2 * 256 * 2 * 1024 + 5 * 2 * 2 * 512 * 2 * 8193
    )
    windowed = 2816 * 256 * (2 * 16 + 2 * 8) + 2 * 256
    full = 2816 * 512 * (2 * 16 + 2) + 2 * 512
    assert amount(books, "decode", "read", account="projections") == 2 * (25 * windowed + 5 * full)


def test_a_dense_mlp_runs_beside_the_experts():
    books = world.books_of(world.model(world.GEMMA4_MOE))
    assert amount(books, "decode", "compute", account="dense") == 30 * 2 * 3 * 2816 * 2112
    assert amount(books, "decode", "compute", account="routed_experts") == pytest.approx(
        30 * 2 * 8 * 3 * 2816 * 704
    )
    assert amount(books, "decode", "compute", account="router") == 30 * 2 * 128 * 2816


def test_biases_and_sinks_of_gpt_oss_are_read_where_they_belong():
    books = world.books_of(world.model(world.GPT_OSS))
    matrices = 2880 * 64 * (64 + 8 + 8) + 64 * 64 * 2880
    biases = 64 * (64 + 8 + 8) + 2880 + 64
    assert amount(books, "decode", "read", account="projections") == 36 * (matrices + biases) * 2
    # mxfp4 experts: 17 bytes for 32 elements; their biases in bf16, 4 experts of one token
    expert = (3 * 2880 * 2880) * 17 / 32 + (2 * 2880 + 2880) * 2
    assert amount(books, "decode", "read", account="routed_experts") == pytest.approx(
        36 * 4 * expert, rel=1e-12
    )
    assert amount(books, "hold", "resident", op="weights") == 65_248_815_744


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
