"""Columns of the fit against sums written out by hand, and against Monte Carlo."""

import numpy as np
import pytest

import ledgerkit as lk
from ledgerkit.loadtest._basis import Basis, attention_read_bytes, distinct_experts

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
