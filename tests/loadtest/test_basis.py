"""Columns of the fit against sums written out by hand, and against Monte Carlo."""

import numpy as np
import pytest

import ledgerkit as lk
from ledgerkit.loadtest._basis import Basis, attention_read_bytes, distinct_experts
from ledgerkit.spec.attention import StateAttention
from ledgerkit.spec.cache import state_bytes

CONTEXTS = np.array([1.0, 100.0, 1023.0, 1024.0, 5000.0, 131072.0])


def test_without_a_model_the_columns_are_one_b_and_bc():
    columns = Basis().columns(np.array([8192.0, 1024.0]), np.array([4.0, 2.5]))
    assert columns.tolist() == [[1, 4, 32768], [1, 2.5, 2560]]


@pytest.mark.parametrize(("experts", "chosen"), [(8, 2), (128, 8), (4, 4)])
def test_distinct_experts_by_simulation(experts, chosen):
    random = np.random.default_rng(0)
    for tokens in (1, 3, 16):
        draws = [
            len({e for _ in range(tokens) for e in random.permutation(experts)[:chosen]})
            for _ in range(800)
        ]
        expected = distinct_experts(experts, chosen, np.array([float(tokens)]))[0]
        assert np.mean(draws) == pytest.approx(expected, abs=4 * np.std(draws) / 28 + 1e-9)


def test_a_dense_model_reads_its_whole_cache():
    model = lk.load_model("llama-3.1-8b")
    basis = Basis(model)
    columns = basis.columns(CONTEXTS, np.full_like(CONTEXTS, 3.0))
    assert columns[:, 1].tolist() == [3.0] * len(CONTEXTS)
    for context, read in zip(CONTEXTS, columns[:, 2], strict=True):
        assert read == 3 * model.cache_bytes(int(context))


def test_windows_stop_growing_where_the_cache_does():
    model = lk.load_model("gemma-3-27b-it")
    read = Basis(model).attention(CONTEXTS, np.ones_like(CONTEXTS))
    for context, value in zip(CONTEXTS, read, strict=True):
        assert value == model.cache_bytes(int(context))
    assert read[-1] < 0.3 * 131072 * read[0]


@pytest.mark.parametrize(
    ("slug", "layers", "indexers"), [("deepseek-v3.2", 61, 61), ("glm-5.2", 78, 21)]
)
def test_top_k_attention_reads_the_chosen_tokens_and_every_index_key(slug, layers, indexers):
    """FlashMLA's fp8 entry has 656 bytes, an index key 132; layers may share an index."""
    basis = Basis(lk.load_model(slug), lk.Deployment(kv_dtype="fp8_ds_mla"))
    read = basis.attention(CONTEXTS, np.full_like(CONTEXTS, 3.0))
    for context, value in zip(CONTEXTS, read, strict=True):
        assert value == 3 * (layers * 656 * min(context, 2048) + indexers * 132 * context)


def test_compressed_attention_reads_a_window_chosen_entries_and_their_index():
    model = lk.load_model("deepseek-v4-pro")
    every_fourth = next(g.attention for g in model.groups if g.attention.indexer is not None)
    every_128th = next(g.attention for g in model.groups if g.attention.indexer is None)
    for context, chosen, plain in zip(
        CONTEXTS,
        attention_read_bytes(every_fourth, CONTEXTS, "fp8"),
        attention_read_bytes(every_128th, CONTEXTS, "fp8"),
        strict=True,
    ):
        window = min(context, 128) * 584
        waiting = 2 * 2 * 2 * (512 + 128) * 4, 2 * 2 * 512 * 4  # fp32, written and read
        assert chosen == window + min(context // 4, 1024) * 584 + context // 4 * 132 + waiting[0]
        assert plain == window + context // 128 * 584 + waiting[1]


def test_recurrent_states_cost_the_same_at_any_length():
    model = lk.load_model("qwen3-next-80b-a3b-instruct")
    states = [g.attention for g in model.groups if isinstance(g.attention, StateAttention)]
    read = attention_read_bytes(states[0], CONTEXTS)
    assert len(set(read.tolist())) == 1
    assert read[0] == 2 * state_bytes(states[0])  # read and written


def test_the_cache_dtype_halves_the_bytes():
    model = lk.load_model("llama-3.1-8b")
    half = Basis(model, lk.Deployment(kv_dtype="fp8")).attention(CONTEXTS, np.ones_like(CONTEXTS))
    full = Basis(model).attention(CONTEXTS, np.ones_like(CONTEXTS))
    assert (full / half).tolist() == [2.0] * len(CONTEXTS)


def test_routed_experts_are_bytes_of_distinct_experts():
    model = lk.load_model("qwen3-30b-a3b")
    basis = Basis(model)
    one = 48 * 3 * 2048 * 768 * 2  # layers, matrices, hidden, width, bf16
    expected = one * distinct_experts(128, 8, np.array([1.0, 16.0]))
    assert basis.weights(np.array([1.0, 16.0])) == pytest.approx(expected, rel=1e-12)
    assert basis.weights_kind == "distinct_experts"


def test_attention_ranks_share_the_sequences():
    layout = lk.Deployment(dp_attention=4)
    read = Basis(None, layout).attention(np.array([10.0]), np.array([9.0]))
    assert read[0] == 3 * 10


def test_shared_layers_still_read_the_cache_of_others():
    model = lk.load_model("gemma-4-e4b-it")
    shared = [g.attention for g in model.groups if not getattr(g.attention, "stores_kv", True)]
    if not shared:
        pytest.fail("this model was chosen because layers share their cache")
    assert (attention_read_bytes(shared[0], np.array([64.0])) > 0).all()
