"""``lk.scheduling``: every mechanism on real deployments, each entry explained."""

from __future__ import annotations

import pytest

import ledgerkit as lk
from ledgerkit._scheduling.inputs import Inputs
from ledgerkit._scheduling.mechanisms import MECHANISMS
from ledgerkit.errors import CatalogError, DeploymentError, LedgerError, WorkloadError

H200 = "h200-sxm-141gb"
WORK = lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=30)
TP8, EP8 = lk.Deployment(tp=8), lk.Deployment(dp_attention=8, ep=8)
CASES = [
    ("continuous_batching", "llama-3.1-8b", None, {"schedule_s": 1e-3}),
    ("continuous_batching", "llama-3.1-8b", None, {"lengths": [10, 500, 900]}),
    ("paged_cache", "llama-3.1-8b", None, {"max_model_len": 32_768, "lengths": "uniform"}),
    ("prefix_cache", "kimi-k2.6", TP8, {"match_tokens": 7168}),
    ("chunked_prefill", "deepseek-v3", TP8, {"chunk_tokens": 1000}),
    ("speculative_decoding", "deepseek-v3", TP8, {"acceptance": 0.85}),
    ("speculative_decoding", "qwen3-next-80b-a3b-instruct", lk.Deployment(tp=2),
     {"acceptance": [0.8, 0.6], "draft_tokens": 2}),
    ("speculative_decoding", "llama-3.1-70b", TP8,
     {"acceptance": 0.7, "draft_tokens": 3, "draft": "llama-3.2-1b"}),
    ("expert_balance", "deepseek-v3", EP8, {"skew": 1.3}),
    ("node_limited_routing", "deepseek-v3", EP8, {"nodes": 8}),
    ("expert_exchange", "deepseek-v3", EP8, {}),
    ("expert_exchange", "deepseek-v3", EP8, {"kernels": "low_latency", "most_tokens": 128}),
    ("graph_padding", "llama-3.1-8b", None, {}),
    ("expert_offload", "deepseek-v3", TP8, {}),
    ("expert_offload", "deepseek-v3", TP8,
     {"how": "in_place", "host_bytes_per_s": 4e11, "host_flop_per_s": 2e13}),
    ("disaggregation", "llama-3.1-8b", None, {"hidden_share": 0.5}),
    ("agent_context", "kimi-k2.6", TP8, {"tool_tokens": 2000, "policy": "summarise", "every": 5}),
    ("pipeline_bubble", "llama-3.1-70b", lk.Deployment(pp=4), {"micro_batches": 8}),
]  # fmt: skip


def book(mechanism, model="llama-3.1-8b", deployment=None, workload=WORK, **settings):
    return lk.scheduling(mechanism, model, H200, deployment, workload, **settings)


@pytest.mark.parametrize(("mechanism", "model", "deployment", "settings"), CASES)
def test_every_entry_explains_itself(mechanism, model, deployment, settings):
    found = book(mechanism, model, deployment, **settings)
    explained = found.explain()
    assert len(explained) == found.entries.height > 0
    for explanation, amount in zip(explained, found.entries["amount"], strict=True):
        assert explanation.evaluate() == pytest.approx(amount, rel=1e-9)
        assert explanation.source in str(explanation)
    assert mechanism in repr(found)


def test_every_mechanism_is_tried_above():
    assert {case[0] for case in CASES} == set(MECHANISMS)


def test_a_hit_saves_what_the_ledger_says():
    found = book("prefix_cache", match_tokens=7168)
    hit = found.values["hit_tokens"]
    books = [
        lk.ledger("llama-3.1-8b", H200, workload={**WORK.model_dump(), "cached_tokens": cached})
        for cached in (0, hit)
    ]
    assert found.values["saved_s"] == pytest.approx(books[0].ttft_s - books[1].ttft_s)
    flop = found.entries.filter(resource="compute")["amount"].sum()
    change = books[1].total("prefill", "compute") - books[0].total("prefill", "compute")
    # pairs between the hit and the new tokens are still computed; the closed form leaves them
    assert flop == pytest.approx(change, rel=1e-3)
    held = found.entries.filter(resource="resident")["amount"].item()
    assert held == lk.load_model("llama-3.1-8b").cache_bytes(hit)
    per_token = found.values["saved_s"] / hit
    pool = books[0].capacity_bytes - 16.06e9 - books[0]._table.reserve_at("mid")
    assert found.values["break_even_reuse_s"] == pytest.approx(per_token * pool / 131_072, rel=0.01)


def test_inputs_agree_with_the_ledger():
    for model, layout in (("deepseek-v3", TP8), ("gemma-4-26b-a4b", lk.Deployment()),
                          ("qwen3-8b", lk.Deployment(tp=2))):  # fmt: skip
        books = lk.ledger(model, H200, layout, WORK)
        at = Inputs(books._table, WORK)
        assert at.decode_s(30) == pytest.approx(books.tpot_s)
        assert at.prefill_s(0) == pytest.approx(books.ttft_s)
        device = layout.devices if model != "deepseek-v3" else 1  # the latent is on every rank
        assert at.kv_bytes_per_token * device == lk.load_model(model).kv_bytes_per_token()
        weights = sum(
            entry.amount_device for entry in books.resident_entries() if entry.op == "weights"
        )
        assert at.resident_weight_bytes == pytest.approx(weights)
    assert at.expand_flop_per_token == 0


def test_what_binds_the_experts_decides_which_rank_is_full():
    few = book("expert_balance", "deepseek-v3", EP8, skew=1.5)
    crowd = {"prompt_tokens": 64, "output_tokens": 64, "concurrency": 65_536}
    many = book("expert_balance", "deepseek-v3", EP8, skew=1.5, workload=crowd)
    assert few.values["bound"] == "weights"
    assert few.values["fullest_over_mean"] < 1.35
    assert many.values["bound"] == "arithmetic"
    assert many.values["fullest_over_mean"] == pytest.approx(1.5, rel=0.02)


def test_an_expert_on_a_rank():
    books = lk.ledger("deepseek-v3", H200, EP8, WORK)
    one = 3 * 7168 * 2048
    assert Inputs(books._table, WORK).expert_bytes() == pytest.approx(one * (1 + 4 / 16384))


def test_drafting_pays_less_as_more_sequences_share_a_step():
    gains = [
        book("speculative_decoding", acceptance=0.75, draft_tokens=4, draft="llama-3.2-1b",
             workload={"prompt_tokens": 1024, "output_tokens": 2, "concurrency": many})
        for many in (1, 64, 512)
    ]  # fmt: skip
    speedups = [found.values["speedup"] for found in gains]
    assert speedups[0] > speedups[1] > speedups[2]
    crossing = gains[0].values["crossover_concurrency"]
    assert 64 < crossing < 1024
    assert speedups[2] < 1 or crossing > 512


def test_an_mtp_block_holds_its_own_weights_only():
    found = book("speculative_decoding", "deepseek-v3", TP8, acceptance=0.85)
    held = found.entries.filter(op="draft weights and cache")["amount"].item()
    # 11.6 billion parameters over eight devices, nearly all in fp8; what joins them is in bf16
    assert held == pytest.approx(11.6e9 / 8, rel=0.2)


def test_padding_to_a_captured_size():
    found = book("graph_padding")
    assert found.values == {"padded_sequences": 32, "captured": True}
    flop = found.entries.filter(resource="compute")["amount"].item()
    assert flop == pytest.approx(2 * 2 * 6.98e9, rel=0.01)


def test_nothing_is_booked_where_nothing_changes():
    assert book("continuous_batching", lengths="fixed").entries.is_empty()
    assert book("expert_balance", "deepseek-v3", TP8).entries.is_empty()
    with pytest.raises(LedgerError, match="no entry"):
        book("expert_balance", "deepseek-v3", TP8).explain()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: book("paging"), CatalogError, "continuous_batching"),
        (lambda: book("paged_cache", chunk=3), DeploymentError, "no setting 'chunk'"),
        (lambda: book("prefix_cache"), DeploymentError, "needs match_tokens="),
        (lambda: book("prefix_cache", match_tokens=9000), DeploymentError, "out of range"),
        (lambda: book("expert_balance"), DeploymentError, "has no experts"),
        (lambda: book("speculative_decoding", acceptance=0.8), DeploymentError, "no MTP"),
        (lambda: book("speculative_decoding", acceptance=2, draft="gpt2"), DeploymentError,
         "acceptance"),
        (lambda: book("continuous_batching", lengths="pareto"), WorkloadError, "uniform"),
        (lambda: book("continuous_batching", workload=None), WorkloadError, "workload"),
        (lambda: lk.scheduling("expert_offload", "deepseek-v3", "apple-m3-ultra", None, WORK),
         DeploymentError, "link_bytes_per_s"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
