"""States, embeddings, shared caches, biases: each booked once and where it belongs."""

from __future__ import annotations

import pytest

from ledgerkit.costs.attention_state import decode_flop_per_token, prefill_flop_per_token
from ledgerkit.spec.attention import StateAttention
from ledgerkit.spec.deployment import Deployment
from tests.costs import world
from tests.costs.world import amount

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
