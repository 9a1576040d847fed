"""What a hostile user typed: each snippet ends in a right result, a note or a full error."""

from __future__ import annotations

import math

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import DeploymentError, UnsupportedDtypeError, WorkloadError
from tests.house.refusal import DEVICE, FEW, INF, MODEL, NAN, SHORT, WORK, refused, simulated

# notes -----------------------------------------------------------------------------------------


def test_sequences_above_the_engine_s_default_are_told():
    crowded = lk.ledger(MODEL, DEVICE, workload=SHORT | {"concurrency": 5000})
    assert any("runs 1024 sequences" in note and "5000" in note for note in crowded.notes)
    calm = crowded.at(lk.Workload(**SHORT, concurrency=1024))
    assert not calm.notes
    ranks = lk.ledger(MODEL, DEVICE, {"dp_attention": 8}, SHORT | {"concurrency": 8192})
    assert not ranks.notes
    trail = lk.compare([calm], trail=("concurrency", [1, 1025]))
    assert any("runs 1024 sequences" in note and "1025" in note for note in trail.notes)
    assert not lk.compare([calm], trail=("concurrency", [1, 512])).notes


# silent numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["weights", "experts"])
@pytest.mark.parametrize("name", ["int64", "int32", "i8", "i16", "f64", "q8_1", "q8_k", "bool"])
def test_formats_that_are_none_of_weights(field, name):
    refused(lambda: lk.Deployment(**{field: name}), f"^{field}: ", UnsupportedDtypeError)


@pytest.mark.parametrize(
    ("model", "asked", "kept", "rows"),
    [
        ("gpt-oss-20b", "q4_k", "q5_0", "2880"),
        ("gpt-oss-20b", "iq2_xxs", "iq4_nl", "2880"),
        ("smollm2-360m", "q6_k", "q8_0", "960"),
    ],
)
def test_rows_that_are_no_whole_blocks_are_kept_as_llama_cpp_keeps_them(model, asked, kept, rows):
    books = lk.ledger(model, DEVICE, {"weights": asked}, SHORT)
    assert any(f"rows of {rows} elements" in note and kept in note for note in books.notes)
    same = lk.ledger("llama-3.1-8b", DEVICE, {"weights": asked}, SHORT)
    assert not any("whole number of blocks" in note for note in same.notes)


def test_bytes_of_rows_that_are_no_whole_blocks():
    """SmolLM2-360M: rows of 960 in q5_0 (22 bytes for 32), rows of 2560 in q4_k (144 for 256)."""
    model = lk.load_model("smollm2-360m")
    books = [lk.ledger(model, DEVICE, {"weights": name}, SHORT) for name in ("bf16", "q4_k")]
    of_960, of_2560 = 960 * (960 + 320 + 320 + 960 + 2 * 2560), 960 * 2560
    saved = 32 * (of_960 * (2 - 22 / 32) + of_2560 * (2 - 144 / 256))
    held = [found.resident_bytes_device for found in books]
    assert held[0] - held[1] == pytest.approx(saved, rel=1e-12)


def test_groups_longer_than_a_row():
    for field in ("weights", "experts"):
        layout = {field: "int4_g999999"}
        refused(lambda layout=layout: lk.ledger("gpt-oss-20b", DEVICE, layout, SHORT),
                f"{field}='int4_g999999': a group is longer than a row of 2880",
                UnsupportedDtypeError)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: lk.Deployment(tp=True), DeploymentError, "tp must be a whole number"),
        (lambda: lk.Deployment(memory_fraction=True), DeploymentError, "must be a number"),
        (lambda: lk.Deployment(engine=b"vllm"), DeploymentError, "engine must be text"),
        (lambda: lk.Deployment(weights=True), DeploymentError, "weights must be text"),
        (lambda: lk.Workload(**SHORT | {"prompt_tokens": b"1"}), WorkloadError, "whole number"),
        (lambda: lk.Workload(**SHORT, concurrency=True), WorkloadError, "whole number"),
    ],
)
def test_flags_and_bytes_are_no_numbers_or_names(call, kind, match):
    refused(call, match, kind)


# scheduling ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "setting", "values"),
    [
        ("chunked_prefill", "chunk_tokens", (0, -1, 1.5, NAN, INF, 1e300, "x", None, True)),
        ("prefix_cache", "match_tokens", (-1, NAN, "x", None, 0.5)),
        ("prefix_cache", "block_size", (0, -1, NAN, "x", 10**400)),
        ("prefix_cache", "restore_bytes_per_s", (0, -1, NAN, INF, "x", 10**400)),
        ("paged_cache", "max_model_len", (0, -1, NAN, "x")),
        ("paged_cache", "lengths", (["x"], [NAN], [1e200], [], 5, None, b"ab", "normal")),
        ("continuous_batching", "schedule_s", (-1, NAN, INF, "x", None, True)),
        ("speculative_decoding", "acceptance", ("x", None, NAN, 1.5, [0.5, 0.5], ["x"], 10**400)),
        ("speculative_decoding", "draft_tokens", (-1, 1.5, "x", None, 10**9)),
        ("pipeline_bubble", "micro_batches", (0, -1, 1.5, "x")),
        ("agent_context", "policy", ("x", None, 5)),
        ("agent_context", "steps", (0, 10**9, NAN, "x", None)),
        ("agent_context", "tool_tokens", (-1, NAN, "x", None)),
        ("disaggregation", "link_bytes_per_s", (0, -1, NAN, "x")),
        ("disaggregation", "hidden_share", (-0.1, 1.1, NAN, "x", None)),
    ],
)
def test_settings_of_mechanisms(mechanism, setting, values):
    needed = {"prefix_cache": {"match_tokens": 512}, "speculative_decoding": {"acceptance": 0.8},
              "agent_context": {"tool_tokens": 100}}.get(mechanism, {})  # fmt: skip
    if mechanism == "speculative_decoding":
        needed |= {"draft": MODEL}
    for value in values:
        given = needed | {setting: value}
        word = {"lengths": "lengths"}.get(setting, setting)
        refused(lambda given=given: lk.scheduling(mechanism, MODEL, DEVICE, None, WORK, **given),
                word)  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "given"),
    [
        ("expert_exchange", {"kernels": "x"}), ("expert_exchange", {"most_tokens": 0}),
        ("expert_offload", {"how": "x"}), ("expert_offload", {"sync_s": -1}),
        ("expert_balance", {"skew": 0}), ("expert_balance", {"skew": None}),
        ("node_limited_routing", {"nodes": 0}), ("node_limited_routing", {"nodes": 10**12}),
        ("node_limited_routing", {"nodes": 4, "node_limit": 0}),
    ],
)  # fmt: skip
def test_settings_of_mechanisms_with_experts(mechanism, given):
    layout = {"tp": 8, "ep": 8}
    refused(lambda: lk.scheduling(mechanism, "deepseek-v3", DEVICE, layout, WORK, **given),
            list(given)[-1])  # fmt: skip


@pytest.mark.parametrize("name", [None, "x", ["x"], 5])
def test_names_of_mechanisms(name):
    refused(lambda: lk.scheduling(name, MODEL, DEVICE, None, WORK), "scheduling mechanism")
    refused(lambda: lk.scheduling("graph_padding", MODEL, DEVICE, None, WORK, zz=1), "'zz'")
    refused(lambda: lk.scheduling("prefix_cache", MODEL, DEVICE, None, WORK), "match_tokens")


# simulations -----------------------------------------------------------------------------------

NONE_ANSWERED = lk.Arrivals.poisson(1.0, requests=5, prompt_tokens=200_000, output_tokens=8)


@pytest.mark.parametrize("length", [0, -1, 1.5, NAN, INF, 1e300, 10**400, True, None, "x", [5]])
def test_lengths(length):
    for field in ("prompt_tokens", "output_tokens"):
        given = SHORT | {field: length}
        refused(lambda given=given: lk.Arrivals.poisson(1.0, requests=5, **given), "length")


def test_lengths_beyond_every_model_are_rejected_without_asking_for_memory():
    giants = lk.Arrivals.poisson(1.0, requests=5, prompt_tokens=1 << 39, output_tokens=4)
    assert simulated(giants).rejected == 5


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("rate_per_s", lambda x: lk.Arrivals.poisson(x, requests=5, **SHORT)),
        ("variation", lambda x: lk.Arrivals.gamma(1.0, x, requests=5, **SHORT)),
        ("requests", lambda x: lk.Arrivals.poisson(1.0, requests=x, **SHORT)),
        ("think_s", lambda x: lk.Arrivals.closed_loop(2, requests=5, think_s=x, **SHORT)),
        ("shared_prefix", lambda x: lk.Arrivals.poisson(
            1.0, requests=5, shared_prefix_tokens=x, **SHORT)),
        ("mean", lk.Lengths.exponential),
        ("variation", lambda x: lk.Lengths.lognormal(5, x)),
        ("tokens", lambda x: lk.Lengths.empirical([x])),
        ("rate_scale", lambda x: lk.Arrivals.from_trace(__file__, rate_scale=x)),
        ("warm_up", lambda x: simulated(warm_up=x)),
        ("share", lambda x: simulated().percentile("ttft_s", x)),
        ("ttft_s of a goal", lambda x: simulated().goodput(ttft_s=x)),
        ("rate", lambda x: simulated().load_curve([x])),
        ("cache_tokens", lambda x: simulated(cache_tokens=x)),
        ("request_path_s", lambda x: simulated(request_path_s=x)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [-1, NAN, 1e300, 10**400, "x", True, [1]])
def test_numbers_of_simulations(name, call, value):
    if name == "rate_scale":
        name = "rate_scale|known format"
    if (name, value) == ("ttft_s of a goal", 1e300):
        return  # a goal that everybody keeps
    refused(lambda: call(value), name)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: simulated(progress=5), "progress"),
        (lambda: simulated(overload="x"), "overload"),
        (lambda: simulated(None), "arrivals"),
        (lambda: simulated(5), "arrivals"),
        (lambda: simulated("\0"), "trace"),
        (lambda: simulated().load_curve(None), "rates_per_s"),
        (lambda: simulated().load_curve([1.0], zz=1), "zz"),
        (lambda: simulated().ablation(5), "mechanisms"),
        (lambda: simulated().engines(5), "names"),
        (lambda: simulated().engines("vllm"), "names"),
        (lambda: simulated().engines(["zz"]), "engine"),
        (lambda: simulated().percentile(None, 0.5), "latency"),
        (lambda: FEW.reuse_ceiling(0), "block_tokens"),
        (lambda: lk.Arrivals.agents(10**9, steps=5, concurrency=1, system_tokens=1, tool_tokens=1,
                                    output_tokens=1), "sessions"),
    ],
)  # fmt: skip
def test_simulations(call, match):
    refused(call, match)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("arrival_s", "x"), ("arrival_s", NAN), ("arrival_s", -1.0), ("prompt_tokens", {"a": 1}),
        ("prompt_tokens", 0), ("output_tokens", 1.5), ("output_tokens", [1]),
        ("prefix_tokens", NAN), ("prefix_tokens", 1e300), ("prefix_tokens", "x"),
        ("prefix_tokens", [1]), ("prefix_tokens", 8),
    ],
)  # fmt: skip
def test_frames_of_requests(column, value):
    rows = {"arrival_s": [0.0, 1.0], "prompt_tokens": [8, 8], "output_tokens": [8, 8],
            "prefix": [1, 1], "prefix_tokens": [4, 4]}  # fmt: skip
    frame = pl.DataFrame(rows | {column: [value, value]})
    refused(lambda: lk.Arrivals.from_frame(frame), column)


def test_a_run_in_which_every_request_is_rejected():
    run = simulated(NONE_ANSWERED)
    assert "5 rejected" in repr(run)
    assert (run.tokens_per_s, run.requests_per_s) == (0.0, 0.0)
    assert all(math.isfinite(value) for value in run.summary.values())
    assert run.requests["ttft_s"].null_count() == 5
    assert not run.requests["is_measured"].any()
    assert run.goodput(ttft_s=1.0) == {"share": 0.0, "requests_per_s": 0.0}
    for limit in (NAN, 0.0, -1.0, "x"):
        refused(lambda limit=limit: run.goodput(ttft_s=limit), "ttft_s of a goal")
    for kind in ("timeline", "books", "latency"):
        error = refused(lambda kind=kind: run.chart(kind), "no request of this run was answered")
        assert error.given == "5 of 5 requests rejected"
        assert "shorter requests" in error.fix
    for call in (lambda: run.ttft_s, lambda: run.latency, lambda: run.percentile("itl_s", 0.5)):
        refused(call, "no measured request was answered")


def test_the_window_of_a_tiny_run_holds_what_clients_see_of_it():
    """Little's law for one request: one in flight, so rate times stay is 1."""
    one = lk.Arrivals.poisson(1.0, requests=1, prompt_tokens=20, output_tokens=5)
    run = simulated(one)
    assert run.requests_per_s * run.e2e_s == pytest.approx(1.0, rel=1e-9)


def test_one_request_has_no_rate_to_change():
    one = simulated(lk.Arrivals.poisson(1.0, requests=1, prompt_tokens=20, output_tokens=5))
    error = refused(lambda: one.load_curve([1.0]), "one moment has no rate")
    assert "longer stream" in error.fix
    loop = lk.Arrivals.closed_loop(2, requests=8, prompt_tokens=20, output_tokens=5)
    refused(lambda: simulated(loop).load_curve([1.0]), "not a loop")


def test_a_stream_too_short_to_tell_the_capacity_says_so():
    burst = lk.Arrivals.poisson(1e4, requests=50, prompt_tokens=640, output_tokens=8)
    assert any("too short to tell the capacity" in note for note in simulated(burst).notes)
    assert not any("too short" in note for note in simulated(burst, overload="run").notes)
