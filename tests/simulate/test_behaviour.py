"""What a run says about itself, what it refuses, how it stops."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit._simulate import intervals
from ledgerkit.errors import (
    CapacityError,
    DeploymentError,
    SimulationCancelledError,
    WorkloadError,
)

POINT = ("llama-3.1-8b", "h100-sxm-80gb")


def stream(rate=8.0, requests=600, **options):
    given = {"prompt_tokens": 1024, "output_tokens": 128, **options}
    return lk.Arrivals.poisson(rate, requests=requests, **given)


def test_books_sum_to_wall_time_and_say_where_it_went():
    found = lk.simulate(*POINT, arrivals=stream(), replicas=2)
    assert int(found.entries["time_ps"].sum()) == 2 * round(found.wall_s * 1e12)
    assert sum(found.share().values()) == pytest.approx(1)
    assert sum(found.share(idle=True).values()) == pytest.approx(1)
    assert {"launch", "host", "queue", "padding"} <= set(found.entries["account"])
    busy = found.timeline.group_by("replica").len()
    assert busy.height == 2


def test_the_same_arguments_give_the_same_run():
    first, second = (
        lk.simulate(*POINT, arrivals=stream(seed=3), draft_tokens=2, acceptance=0.6)
        for _ in range(2)
    )
    assert first.requests.equals(second.requests)
    assert first.entries.equals(second.entries)
    other = lk.simulate(*POINT, arrivals=stream(seed=3), draft_tokens=2, acceptance=0.6, seed=1)
    assert not first.requests.equals(other.requests)


def test_frames_have_what_they_promise():
    found = lk.simulate(*POINT, arrivals=stream())
    assert found.requests.height == 600
    assert found.requests["is_measured"].sum() == 540
    rows = {(r["metric"], r["statistic"]): r for r in found.latency.iter_rows(named=True)}
    for metric in ("ttft_s", "tpot_s", "e2e_s"):
        order = [rows[metric, name]["value"] for name in ("p50", "p90", "p99")]
        assert order == sorted(order)
        one = rows[metric, "mean"]
        assert one["low"] < one["value"] < one["high"]
    assert rows["itl_s", "p50"]["value"] == pytest.approx(rows["tpot_s", "p50"]["value"], rel=0.2)
    kept = found.goodput(ttft_s=rows["ttft_s", "p50"]["value"])
    assert kept["share"] == pytest.approx(0.5, abs=0.01)
    assert found.summary["running"] == pytest.approx(
        float(found.requests["e2e_s"].sum() - 0.045 * 600 - found.requests["wait_s"].sum())
        / found.wall_s, rel=0.05,
    )  # fmt: skip


def test_calibration_slows_decode():
    point = {"prompt_tokens": 1024, "output_tokens": 512, "concurrency": 16, "tpot_s": 0.018}
    measured = lk.calibrate(point, *POINT)
    loop = lk.Arrivals.closed_loop(1, requests=2, prompt_tokens=1024, output_tokens=512)
    plain = lk.simulate(*POINT, arrivals=loop)
    found = lk.simulate(*POINT, arrivals=loop, calibration=measured)
    assert found.tpot_s / plain.tpot_s == pytest.approx(measured.tpot_factor, rel=1e-6)


def test_prefix_cache_saves_and_a_router_that_knows_it_saves_more():
    shared = {"prompt_tokens": 2048, "shared_prefix_tokens": 1920, "prefixes": 16}
    runs = {
        router: lk.simulate(*POINT, arrivals=stream(20, **shared), replicas=4, router=router,
                            cache_tokens=16_000)
        for router in ("round_robin", "prefix_aware")
    }  # fmt: skip
    without = lk.simulate(*POINT, arrivals=stream(20, **shared), replicas=4, prefix_cache=False)
    assert without.hit_rate == 0
    assert runs["round_robin"].hit_rate > 0.2
    assert runs["prefix_aware"].hit_rate > runs["round_robin"].hit_rate + 0.1
    assert runs["prefix_aware"].ttft_s < without.ttft_s


def test_an_unstable_stream_is_refused_with_the_capacity():
    with pytest.raises(WorkloadError, match=r"above capacity.*allowed: below about \d"):
        lk.simulate(*POINT, lk.Deployment(max_num_seqs=16), stream(500, requests=1000))
    found = lk.simulate(*POINT, lk.Deployment(max_num_seqs=16), stream(500, requests=1000),
                        overload="run")  # fmt: skip
    assert found.capacity_per_s == pytest.approx(found.requests_per_s, rel=0.1)
    assert any("above the capacity" in note for note in found.notes)
    inside = lk.simulate(*POINT, lk.Deployment(max_num_seqs=16),
                         stream(0.7 * found.capacity_per_s, requests=1000))  # fmt: skip
    assert inside.ttft_s < 2


def test_requests_longer_than_the_cache_are_rejected_and_counted():
    lengths = lk.Lengths.empirical([512, 5000], [3, 1])
    found = lk.simulate(*POINT, arrivals=stream(1, prompt_tokens=lengths), cache_tokens=4096)
    assert 0 < found.rejected < 300
    assert found.answered == 600 - found.rejected
    assert found.requests.filter(~pl.col("is_answered"))["prompt_tokens"].min() == 5000
    assert any("rejected" in note for note in found.notes)
    with pytest.raises(CapacityError, match="no room"):
        lk.simulate("llama-3.1-70b", "h100-sxm-80gb", arrivals=stream(1))


def test_a_run_can_be_cancelled_and_tells_its_progress():
    seen = []
    lk.simulate(*POINT, arrivals=stream(), progress=seen.append)
    assert seen[-1].fraction == 1
    with pytest.raises(SimulationCancelledError, match="cancelled"):
        lk.simulate(*POINT, arrivals=stream(), progress=lambda _: False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lk.Arrivals.poisson(0, requests=1, prompt_tokens=1, output_tokens=1), "rate"),
        (lambda: stream(float("nan")), "rate"),
        (lambda: stream(prompt_tokens=0), "tokens"),
        (lambda: stream(prompt_tokens=1.5), "whole"),
        (lambda: stream(requests=0), "requests"),
        (lambda: stream(shared_prefix_tokens=1024), "shared_prefix"),
        (lambda: lk.Lengths.exponential(-1), "mean"),
        (lambda: lk.Lengths.preset("x"), "preset"),
        (lambda: lk.Arrivals.closed_loop(0, requests=1, prompt_tokens=1, output_tokens=1), "conc"),
        (lambda: lk.simulate(*POINT), "needs arrivals"),
        (lambda: lk.simulate(*POINT, arrivals=3), "polars frame"),
        (lambda: lk.simulate(*POINT, arrivals="no/such/file.csv"), "cannot be read"),
        (lambda: lk.simulate(*POINT, arrivals=stream(), warm_up=1.5), "warm_up"),
        (lambda: lk.simulate(*POINT, arrivals=stream(), overload="x"), "overload"),
        (lambda: lk.simulate(*POINT, arrivals=stream()).percentile("x", 0.5), "latency"),
        (lambda: lk.simulate(*POINT, arrivals=stream()).goodput(ttft_s=0), "goal"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(WorkloadError, match=message):
        make()


@pytest.mark.parametrize(
    "fields",
    [{"acceptance": 0.5}, {"batching": "static", "draft_tokens": 2}, {"replicas": 0}, {"x": 1},
     {"router": "random"}],
)  # fmt: skip
def test_settings_that_contradict_each_other_are_refused(fields):
    with pytest.raises(DeploymentError):
        lk.simulate(*POINT, arrivals=stream(requests=2), **fields)


AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", AZURE + "2023-11-16 18:17:04,0,5\n", "line 3"),
        ("a.csv", AZURE + "yesterday,10,5\n", "line 3"),
        ("a.csv", AZURE + "2023-11-16 18:17:04,10\n", "line 3"),
        ("a.csv", AZURE + "2023-11-16 18:17:04,nan,5\n", "line 3"),
        ("a.csv", "a,b\n1,2\n", "no known format"),
        ("a.csv", AZURE.splitlines()[0] + "\n", "no request"),
        ("m.jsonl", '{"timestamp": 0}\n', "line 1"),
        ("m.jsonl", "{broken\n", "line 1"),
        ("m.jsonl", '{"timestamp": -1, "input_length": 5, "output_length": 1, "hash_ids": [0]}\n',
         "line 1"),
        ("m.jsonl", '{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [0]}\n',
         "2 blocks"),
    ],
)  # fmt: skip
def test_malformed_traces_are_named_by_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(WorkloadError, match=message):
        lk.Arrivals.from_trace(path)


@pytest.mark.parametrize("value", [float("nan"), -1.0, float("inf")])
def test_times_of_frames_are_finite_and_not_negative(value):
    frame = pl.DataFrame({"arrival_s": [0.0, value], "prompt_tokens": [5, 5],
                          "output_tokens": [1, 1]})  # fmt: skip
    with pytest.raises(WorkloadError, match="row 1"):
        lk.Arrivals.from_frame(frame)


def test_traces_and_frames_are_read(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(AZURE + "2023-11-16 18:17:05.9799600,100,5\n")
    trace = lk.Arrivals.from_trace(path, rate_scale=2)
    assert trace.arrival_s.tolist() == pytest.approx([0, 1])
    line = {"timestamp": 1000, "input_length": 700, "output_length": 3, "hash_ids": [7, 8]}
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(json.dumps({**line, "timestamp": t}) for t in (0, 2000)))
    trace = lk.Arrivals.from_trace(path)
    assert trace.reuse_ceiling() == 0.5
    found = lk.simulate(*POINT, arrivals=path)
    assert found.requests["cached_tokens"].to_list() == [0, 688]
    frame = pl.DataFrame({"arrival_s": [3.0, 1.0], "prompt_tokens": [64, 80],
                          "output_tokens": [4, 4], "prefix": ["a", "a"],
                          "prefix_tokens": [48, 48]})  # fmt: skip
    found = lk.simulate(*POINT, arrivals=frame)
    assert found.requests["cached_tokens"].to_list() == [0, 48]


def test_block_hits_of_the_public_trace(shared):
    trace = lk.Arrivals.from_trace(shared / "facts/traces/mooncake_conversation_first2000.jsonl")
    assert trace.requests == 2000
    assert trace.reuse_ceiling() == pytest.approx(0.289, abs=0.0005)


def test_presets_are_those_of_the_public_traces(shared):
    for name, file in (("code", "code"), ("conversation", "conv")):
        trace = lk.Arrivals.from_trace(shared / f"facts/traces/AzureLLMInferenceTrace_{file}.csv")
        for side, tokens in (("prompt", trace.prompt_tokens), ("output", trace.output_tokens)):
            drawn = lk.Lengths.preset(f"azure-{name}-{side}").draw(np.random.default_rng(0), 20000)
            assert np.median(drawn) == pytest.approx(np.median(tokens), rel=0.2)


@given(st.lists(st.floats(1e-5, 10), min_size=1, max_size=50), st.floats(0, 1))
def test_quantiles_of_gaps_are_good_to_a_bin(values, share):
    from ledgerkit.kernels.serving import GAP_BINS
    from ledgerkit.kernels.simulator import gap_bin

    bins = np.zeros(GAP_BINS, np.int64)
    for value in values:
        bins[gap_bin(round(value * 1e12))] += 1
    wanted = np.quantile(values, share, method="inverted_cdf")
    assert intervals.histogram_quantile(bins, share) == pytest.approx(wanted, rel=0.012)


def test_studies_of_one_run():
    run = lk.simulate(*POINT, arrivals=stream(6, requests=300, shared_prefix_tokens=512))
    curve = run.load_curve([2, 6, 40], ttft_s=1.0, tpot_s=0.05)
    assert curve["ttft_s_p99"].is_sorted()
    assert curve["goodput_share"][0] == 1
    without = run.ablation()
    assert without["without"].to_list()[:2] == ["nothing", "prefix cache"]
    worst = without.filter(without="continuous batching").row(0, named=True)
    assert worst["ttft_s_p50"] > 3 * run.percentile("ttft_s", 0.5)
    rows, books = run.engines(["vllm", "sglang"])
    assert rows.height == 2
    assert set(books["engine"]) == set(rows["engine"])


def test_agents_reuse_their_history_unless_it_is_trimmed():
    runs = {}
    for keep in ("all", "trim", "summarise"):
        loop = lk.Arrivals.agents(8, steps=12, concurrency=4, system_tokens=2000, tool_tokens=1500,
                                  output_tokens=150, keep=keep)  # fmt: skip
        runs[keep] = lk.simulate(*POINT, arrivals=loop)
    assert runs["all"].hit_rate > 0.8 > runs["trim"].hit_rate > 0.3
    prompts = {keep: run.arrivals.prompt_tokens.sum() for keep, run in runs.items()}
    assert prompts["trim"] < prompts["all"]
    assert prompts["summarise"] < prompts["all"]
