"""What a hostile user typed: each snippet ends in a right result, a note or a full error."""

from __future__ import annotations

import math
import os
import pathlib
import subprocess
import sys

import pytest

import ledgerkit as lk
from ledgerkit.__main__ import main
from ledgerkit.errors import DeploymentError, LedgerError, UnsupportedDtypeError, WorkloadError

MODEL, DEVICE = "llama-3.1-8b", "h100-sxm-80gb"
SHORT = {"prompt_tokens": 8, "output_tokens": 8}


def refused(call, match, kind=LedgerError, given=True):
    """The call raises this kind of error, which says all that it should."""
    with pytest.raises(kind, match=match) as caught:
        call()
    error = caught.value
    assert type(error) is not LedgerError or kind is LedgerError
    assert "given:" in str(error) or not given
    assert error.allowed
    assert error.fix
    return error


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

WORK = {"prompt_tokens": 1024, "output_tokens": 128, "concurrency": 32}
NAN, INF = float("nan"), float("inf")


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
FEW = lk.Arrivals.poisson(1.0, requests=5, prompt_tokens=20, output_tokens=5)


def simulated(arrivals=FEW, **options):
    return lk.simulate(MODEL, DEVICE, arrivals=arrivals, **options)


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


def test_a_run_in_which_every_request_is_rejected():
    run = simulated(NONE_ANSWERED)
    assert "5 rejected" in repr(run)
    assert (run.tokens_per_s, run.requests_per_s) == (0.0, 0.0)
    assert all(math.isfinite(value) for value in run.summary.values())
    assert run.requests["ttft_s"].null_count() == 5
    assert not run.requests["is_measured"].any()
    assert run.goodput(ttft_s=1.0) == {"share": 0.0, "requests_per_s": 0.0}
    for call in (lambda: run.ttft_s, lambda: run.latency, lambda: run.percentile("itl_s", 0.5)):
        refused(call, "no measured request was answered")


def test_the_window_of_a_tiny_run_holds_what_clients_see_of_it():
    """Little's law for one request: one in flight, so rate times stay is 1."""
    one = lk.Arrivals.poisson(1.0, requests=1, prompt_tokens=20, output_tokens=5)
    run = simulated(one)
    assert run.requests_per_s * run.e2e_s == pytest.approx(1.0, rel=1e-9)


def test_a_stream_too_short_to_tell_the_capacity_says_so():
    burst = lk.Arrivals.poisson(1e4, requests=50, prompt_tokens=640, output_tokens=8)
    assert any("too short to tell the capacity" in note for note in simulated(burst).notes)
    assert not any("too short" in note for note in simulated(burst, overload="run").notes)


# verbs -----------------------------------------------------------------------------------------

POINT = {"model": MODEL, "hardware": DEVICE, "workload": SHORT}


def books():
    return lk.ledger(MODEL, DEVICE, workload=SHORT)


def room(**options):
    return lk.capacity(MODEL, DEVICE, **options)


def loaded(**options):
    return lk.steady_state(MODEL, DEVICE, workload=WORK, **options)


MEASURED = {"prompt_tokens": 8, "output_tokens": 8, "concurrency": 1}


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: lk.ledger("a" * 5000, DEVICE, workload=SHORT), "no built-in model"),
        (lambda: lk.ledger(MODEL, DEVICE, 5, SHORT), "deployment"),
        (lambda: lk.ledger(MODEL, DEVICE, {5: 1}, SHORT), "fields of a deployment"),
        (lambda: lk.ledger(MODEL, DEVICE, None, {5: 1}), "fields of a workload"),
        (lambda: lk.ledger(MODEL, DEVICE, None, SHORT, calibration=5), "calibration"),
        (lambda: books().at(5), "workload"),
        (lambda: books().chart(zz=1), "'zz'"),
        (lambda: books().chart(table=1), "'table'"),
        (lambda: books().chart(kind=None), "kind of chart"),
        (lambda: lk.compare([books()]).chart(zz=1), "'zz'"),
        (lambda: lk.compare(None), "list of points"),
        (lambda: lk.compare(5), "list of points"),
        (lambda: lk.compare([]), "at least one point"),
        (lambda: lk.compare([{5: 1, "x": 2}]), "unknown keys"),
        (lambda: lk.compare([POINT], trail=("prompt_tokens", [True])), "trail"),
        (lambda: lk.compare([POINT], trail=("prompt_tokens", [10**400])), "trail"),
        (lambda: loaded(prefill_workers=NAN, decode_workers=1), "workers"),
        (lambda: loaded(prefill_workers="2", decode_workers="x"), "workers"),
        (lambda: loaded(prefill_workers=-2, decode_workers=1), "workers"),
        (lambda: loaded(prefill_workers=1.5, decode_workers=1), "workers"),
        (lambda: loaded(prefill_workers=1, decode_workers=INF), "workers"),
        (lambda: loaded(prefill_workers=10**400, decode_workers=1), "workers"),
        (lambda: loaded(prefix_hit_rate="x"), "prefix_hit_rate"),
        (lambda: loaded(prefix_hit_rate=NAN), "prefix_hit_rate"),
        (lambda: loaded(calibration=5), "calibration"),
        (lambda: simulated(calibration=5), "calibration"),
        (lambda: room(workload="x"), "workload"),
        (lambda: room(pool_bytes="x"), "pool_bytes"),
        (lambda: room(pool_bytes=0), "pool_bytes"),
        (lambda: room().ideal_bytes(-1), "tokens"),
        (lambda: room().ideal_bytes(1, "zz"), "devices"),
        (lambda: room().swap_blocks("x"), "swap_bytes"),
        (lambda: room().swap_blocks(-1), "swap_bytes"),
        (lambda: room().max_concurrency(0), "tokens"),
        (lambda: room().max_concurrency(NAN), "tokens"),
        (lambda: room().reserved_bytes("x"), "tokens"),
        (lambda: room().fits(0), "tokens"),
        (lambda: room().transfer_bytes(-1), "prompt_tokens"),
        (lambda: room().llamacpp(zz=1), "'zz'"),
        (lambda: lk.cache_table(None, [1]), "models"),
        (lambda: lk.cache_table(MODEL, [1]), "models"),
        (lambda: lk.cache_table([MODEL], 5), "contexts"),
        (lambda: lk.cache_table([MODEL], ["x"]), "contexts"),
        (lambda: lk.cache_table([MODEL], [NAN]), "contexts"),
        (lambda: lk.cache_table([MODEL], [10**9]), "no model reaches"),
        (lambda: lk.calibrate(None, MODEL, DEVICE), "measured points"),
        (lambda: lk.calibrate("x", MODEL, DEVICE), "measured points"),
        (lambda: lk.calibrate([5], MODEL, DEVICE), "measured points"),
        (lambda: lk.calibrate([], MODEL, DEVICE), "nothing to calibrate on"),
        (lambda: lk.calibrate(MEASURED | {"tpot_s": "x"}, MODEL, DEVICE), "tpot_s"),
        (lambda: lk.calibrate(MEASURED | {"tpot_s": 0.01, "concurrency": NAN}, MODEL, DEVICE),
         "concurrency"),
        (lambda: lk.set_language("fr"), "unknown language"),
        (lambda: lk.set_language(["zh"]), "unknown language"),
        (lambda: lk.set_language(None), "language"),
    ],
)  # fmt: skip
def test_verbs(call, match):
    refused(call, match)


def test_a_pool_that_is_none_is_said_in_words():
    assert "no pool, " in repr(lk.capacity("llama-3.1-70b", DEVICE))


def test_fields_of_a_workload_do_wherever_a_workload_does():
    assert books().at({"prompt_tokens": 16, "output_tokens": 8}).workload.prompt_tokens == 16
    assert room(workload=SHORT).max_model_len == 16


# files and commands ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("deep.json", "[" * 50_000, "nested too deeply"),
        ("digits.json", '{"a": ' + "1" * 5000 + "}", "cannot be read"),
        ("broken.json", '{"a": ', "broken JSON"),
        ("kind.json", '{"metadata": 5, "metrics": 5}', "unknown result format"),
    ],
)
def test_results_of_load_tests(tmp_path, name, content, match):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    refused(lambda: lk.loadtest.read(path), match)


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (5, "columns"), ({"zz": "ctx"}, "no columns of ours"), ({"itl_s": 5}, "itl_s"),
        ({"itl_s": ("ctx", "x")}, "factor"), ({"itl_s": "zz"}, "does not have"),
        ({5: "ctx"}, "no columns of ours"), ({"itl_s": "ctx"}, "not a number"),
    ],
)  # fmt: skip
def test_columns_of_plain_files(tmp_path, columns, match):
    path = tmp_path / "rows.csv"
    path.write_text("ctx,itl\nx,1\n", encoding="utf-8")
    refused(lambda: lk.loadtest.read(path, columns=columns), match)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: lk.loadtest.read("\0"), "null byte"),
        (lambda: lk.loadtest.read(None), "path"),
        (lambda: lk.Calibration.load("nowhere.json"), "calibration"),
        (lambda: lk.load_model(pathlib.Path("\0")), "null byte"),
        (lambda: lk.load_model(None), "model reference"),
        (lambda: lk.save_figure(books().chart(), 5), "path"),
        (lambda: lk.save_figure(books().chart(), "figure.zz"), "format"),
        (lambda: lk.save_figure(books().chart(), "figure.svg", scale="x"), "scale"),
        (lambda: lk.save_figure(5, "figure.svg"), "no chart"),
        (lambda: books().chart(language="fr"), "language"),
        (lambda: books().chart(theme="zz"), "theme"),
        (lambda: lk.widgets.ConfigDrop(zz=1), "'zz'"),
        (lambda: lk.widgets.ConfigDrop(5), "config"),
    ],
)
def test_paths_and_options(call, match):
    refused(call, match)


@pytest.mark.parametrize(
    "command",
    [["figures", "--out", "{}/taken/out"], ["figures", "--html", "{}/taken/x.html"],
     ["report", MODEL, "--out", "{}/taken/x.md"]],
)  # fmt: skip
def test_places_that_cannot_be_made(tmp_path, capsys, command):
    (tmp_path / "taken").write_text("a file")
    assert main([word.format(tmp_path) for word in command]) == 2
    told = capsys.readouterr().err
    assert "cannot read or write there" in told
    assert "Fix: " in told


def test_a_terminal_without_the_signs_shows_the_report():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "ledgerkit", "report", MODEL]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert b"?" in done.stdout
