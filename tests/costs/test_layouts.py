"""What layouts copy and send, as literals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ledgerkit as lk
from ledgerkit.kernels import step as kernels
from ledgerkit.spec.deployment import Deployment
from tests.costs import world
from tests.costs.world import amount, per_token

KI = 1024


# layouts ---------------------------------------------------------------------------------------


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


def test_mamba_layers_of_the_first_kind_sum_twice() -> None:
    """Falcon-Mamba-7B: x_proj gives 256 + 2 x 16 elements, from channels that ranks divide."""
    model = lk.load_model(
        {"model_type": "falcon_mamba", "hidden_size": 4096, "intermediate_size": 8192,
         "num_hidden_layers": 64, "state_size": 16, "conv_kernel": 4, "time_step_rank": 256,
         "vocab_size": 65024, "tie_word_embeddings": False}
    )  # fmt: skip
    work = lk.Workload(prompt_tokens=64, output_tokens=8, concurrency=4)
    entries = lk.ledger(model, "h100-sxm-80gb", lk.Deployment(tp=8), work).entries
    sent = entries.filter(phase="decode", resource="communicate")
    by_op = dict(sent.group_by("op").agg("amount_device").rows())
    amounts = {op: values[0] for op, values in by_op.items()}
    assert amounts["scan_all_reduce"] / amounts["all_reduce"] == pytest.approx(288 / 4096)
    alone = lk.ledger(model, "h100-sxm-80gb", lk.Deployment(), work).entries
    assert not alone.filter(phase="decode", op="scan_all_reduce").height
