"""The client against a good server: what is sent, timed, counted, kept and continued."""

import json
import os
import threading
import time

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import LoadTestError
from tests.loadtest.hostile import serving

QUICK = lk.loadtest.Limits(connect_s=2, first_token_s=2, stall_s=1, request_s=5, retries=1)


@pytest.fixture(scope="module")
def server():
    with serving() as found:
        yield found


def small(**options):
    given = {"contexts": [32, 64], "concurrencies": [1, 3], "output_tokens": 12, "runs": 2,
             "warmup": 1}  # fmt: skip
    return lk.loadtest.plan(**{**given, **options})


def test_every_request_of_the_plan_is_measured(server):
    plan = small()
    results = lk.loadtest.run(plan, server.url("good"), limits=QUICK)
    assert results.failures.is_empty()
    assert results.requests.height == sum(plan.cells[i].concurrency for i, _ in plan.order)
    assert results.cells.height == len(plan.order) == 9
    assert set(results.requests["tokens_from"]) == {"usage"}
    assert results.requests["output_tokens"].to_list() == [12] * results.requests.height
    assert (results.cells["concurrency"] == results.cells["concurrency_requested"]).all()
    assert (results.cells["itl_s"] > 0).all()  # no less: a busy machine delivers pieces in lumps
    assert (results.requests["e2e_s"] >= results.requests["ttft_s"]).all()


def test_streams_of_a_cell_run_at_the_same_time(server):
    server.most = 0
    lk.loadtest.run(small(concurrencies=[5], runs=1), server.url("good"), limits=QUICK)
    assert server.most == 5


def test_prompts_are_never_repeated(server):
    server.seen.clear()
    for _ in range(2):
        lk.loadtest.run(small(runs=1), server.url("good"), limits=QUICK)
    beginnings = [" ".join(body["prompt"].split()[:16]) for body in server.seen]
    assert len(set(beginnings)) == len(beginnings)


def test_text_is_calibrated_to_the_tokens_that_the_server_counts(server):
    results = lk.loadtest.run(small(), server.url("good"), limits=QUICK)
    counted = results.requests.select("prompt_tokens", "prompt_tokens_requested")
    assert (counted["prompt_tokens"] == counted["prompt_tokens_requested"]).all()


def test_token_ids_have_the_exact_length(server):
    server.seen.clear()
    plan = small(model="smollm2-135m")
    lk.loadtest.run(plan, server.url("good"), limits=QUICK)
    sent = [body["prompt"] for body in server.seen if len(body["prompt"]) >= 32]
    assert {len(prompt) for prompt in sent} == {32, 64}
    assert all(0 <= token < 49152 for prompt in sent for token in prompt)


def test_chat_requests_carry_messages(server):
    server.seen.clear()
    lk.loadtest.run(small(runs=1), server.url("good"), kind="chat", limits=QUICK)
    assert all(body["messages"][0]["role"] == "user" for body in server.seen)


def test_metrics_of_the_server_are_sampled(server):
    results = lk.loadtest.run(small(), server.url("vllm"), limits=QUICK, memory=lambda: 5e9)
    assert results.provenance["server"]["metrics"] is True
    assert results.cells["kv_usage_peak"].to_list() == [0.25] * results.cells.height
    assert results.cells["preemptions"].to_list() == [0.0] * results.cells.height
    assert results.cells["peak_memory_bytes"].to_list() == [5e9] * results.cells.height


def test_a_memory_function_that_hangs_or_raises_does_not_stop_the_test(server):
    forever = threading.Event()
    began = time.monotonic()
    results = lk.loadtest.run(
        small(runs=1), server.url("good"), limits=QUICK, memory=lambda: forever.wait(600) and None
    )
    assert time.monotonic() - began < 30
    assert results.failures.is_empty()

    def broken():
        raise RuntimeError("no such device")

    results = lk.loadtest.run(small(runs=1), server.url("good"), limits=QUICK, memory=broken)
    assert results.provenance["memory_error"] == "RuntimeError: no such device"
    assert results.cells["peak_memory_bytes"].null_count() == results.cells.height
    forever.set()


def test_a_server_without_metrics_leaves_nulls(server):
    results = lk.loadtest.run(small(), server.url("good"), limits=QUICK)
    assert results.provenance["server"]["metrics"] is False
    assert results.cells["kv_usage_peak"].null_count() == results.cells.height
    assert results.cells["peak_memory_bytes"].null_count() == results.cells.height


def test_results_survive_the_file(server, tmp_path):
    out = tmp_path / "deep" / "test.parquet"
    results = lk.loadtest.run(small(), server.url("good"), limits=QUICK, out=out)
    again = lk.loadtest.Results.load(out)
    assert again.requests.equals(results.requests)
    assert again.cells.equals(results.cells)
    assert again.provenance == json.loads(json.dumps(results.provenance))
    assert [path.name for path in out.parent.iterdir()] == ["test.parquet"]


def test_the_key_is_sent_and_kept_nowhere(server, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    server.headers.clear()
    out = tmp_path / "test.parquet"
    results = lk.loadtest.run(
        small(), server.url("good"), limits=QUICK, out=out, api_key_env="MY_KEY"
    )
    assert any("Bearer sk-very-secret" in head for head in server.headers)
    assert "secret" not in json.dumps(results.provenance)
    assert b"very-secret" not in out.read_bytes()
    with pytest.raises(LoadTestError, match="does not answer") as refused:
        lk.loadtest.run(small(), server.url("rejects"), limits=QUICK, api_key_env="MY_KEY")
    assert "very-secret" not in str(refused.value)


@pytest.mark.parametrize("key", ["sk-very\nsecret", "sk-sécret", "sk\x00"])
def test_a_key_that_no_header_carries_is_not_shown(server, monkeypatch, key):
    monkeypatch.setattr("os.environ", {**os.environ, "MY_KEY": key})
    with pytest.raises(LoadTestError, match="MY_KEY") as refused:
        lk.loadtest.run(small(), server.url("good"), limits=QUICK, api_key_env="MY_KEY")
    assert "cret" not in str(refused.value)
    assert "sk" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"out": "result.csv"}, "Parquet"),
        ({"extra_body": {"x": object()}}, "extra_body"),
        ({"extra_body": {"x": float("nan")}}, "extra_body"),
        ({"extra_body": [1]}, "extra_body"),
        ({"kind": "embeddings"}, "endpoint"),
        ({"verify": "absent.pem"}, "CA bundle"),
        ({"stop": True}, "stop"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_sent(server, options, says):
    server.seen.clear()
    with pytest.raises(LoadTestError, match=says):
        lk.loadtest.run(small(), server.url("good"), limits=QUICK, **options)
    assert server.seen == []


def test_a_file_that_cannot_be_written_leaves_nothing_that_looks_whole(server, tmp_path):
    results = lk.loadtest.run(small(runs=1), server.url("good"), limits=QUICK)
    (tmp_path / "file").touch()
    with pytest.raises(LoadTestError, match="cannot be written"):
        results.save(tmp_path / "file" / "test.parquet")
    with pytest.raises(LoadTestError, match="journal"):
        lk.loadtest.run(
            small(), server.url("good"), limits=QUICK, out=tmp_path / "file" / "test.parquet"
        )
    whole = results.save(tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LoadTestError, match="Parquet"):
        lk.loadtest.read(tmp_path / "cut.parquet")
    with pytest.raises(LoadTestError, match=r"result\.parquet"):
        results.save(tmp_path / "result.json")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "whole.parquet", "cut.parquet"}


def test_a_stopped_test_is_continued_where_it_was(server, tmp_path):
    plan, out, stop = small(runs=3), tmp_path / "test.parquet", threading.Event()

    def progress(done, *_):
        if done == 5:
            stop.set()

    part = lk.loadtest.run(
        plan, server.url("good"), limits=QUICK, out=out, stop=stop, progress=progress
    )
    assert part.provenance["end"] == "stopped"
    assert not out.exists()
    assert part.cells.height == 5
    whole = lk.loadtest.run(plan, server.url("good"), limits=QUICK, out=out)
    assert whole.provenance["end"] == "finished"
    assert whole.cells.height == len(plan.order)
    kept = part.cells.select("cell", "run", "itl_s").rows()
    assert whole.cells.select("cell", "run", "itl_s").rows()[:5] == kept
    assert out.exists()


def test_a_journal_is_readable_and_a_torn_line_does_not_matter(server, tmp_path):
    plan, out, stop = small(), tmp_path / "test.parquet", threading.Event()
    lk.loadtest.run(
        plan, server.url("good"), limits=QUICK, out=out, stop=stop,
        progress=lambda done, *_: stop.set() if done == 3 else None,
    )  # fmt: skip
    journal = out.with_name("test.parquet.journal.jsonl")
    with journal.open("a") as file:
        file.write('{"request": {"cell": "32 x')
    assert lk.loadtest.read(journal).cells.height == 3
    assert lk.loadtest.run(plan, server.url("good"), limits=QUICK, out=out).cells.height == 9


def test_another_plan_does_not_continue_a_journal(server, tmp_path):
    out, stop = tmp_path / "test.parquet", threading.Event()
    lk.loadtest.run(
        small(), server.url("good"), limits=QUICK, out=out, stop=stop,
        progress=lambda *_: stop.set(),
    )  # fmt: skip
    with pytest.raises(LoadTestError, match="another plan"):
        lk.loadtest.run(small(seed=1), server.url("good"), limits=QUICK, out=out)
    with pytest.raises(LoadTestError, match="unfinished"):
        lk.loadtest.run(small(), server.url("good"), limits=QUICK, out=out, resume=False)


def test_stopping_does_not_wait_for_a_slow_answer(server):
    stop = threading.Event()
    patient = lk.loadtest.Limits(connect_s=2, first_token_s=60, stall_s=60, request_s=60)
    plan = small()
    timer = threading.Timer(1.0, stop.set)
    timer.start()
    began = time.monotonic()
    results = lk.loadtest.run(plan, server.url("turns_slow"), limits=patient, stop=stop)
    assert time.monotonic() - began < 10
    assert results.provenance["end"] == "stopped"


def test_runs_inside_a_running_loop(server):
    import asyncio

    async def notebook():
        return lk.loadtest.run(small(runs=1), server.url("good"), limits=QUICK)

    assert asyncio.run(notebook()).cells.height == 5


@pytest.mark.parametrize("wrong", [{"stall_s": 0}, {"retries": -1}, {"request_s": "long"}])
def test_limits_that_make_no_sense(wrong):
    with pytest.raises(LoadTestError, match=next(iter(wrong))):
        lk.loadtest.Limits(**wrong)


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8000",
        "ftp://x/",
        "http://user:pw@host",
        "http://h/?key=1",
        "",
        None,
        8000,
        "http://[::1",
        "http://host:99999",
        "http://host:x",
    ],
)
def test_addresses_that_cannot_be_used(address):
    with pytest.raises(LoadTestError, match="base_url"):
        lk.loadtest.run(small(), address)


def test_an_unreachable_server_is_an_error_at_once(unused_port):
    with pytest.raises(LoadTestError, match="list its models"):
        lk.loadtest.run(small(), f"http://127.0.0.1:{unused_port}", limits=QUICK)
    with pytest.raises(LoadTestError, match="refused"):
        lk.loadtest.run(small(), f"http://127.0.0.1:{unused_port}", served_model="x", limits=QUICK)


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_finished_test_can_be_judged(server):
    results = lk.loadtest.run(small(runs=3), server.url("good"), limits=QUICK)
    found = lk.loadtest.diagnose(results)
    assert found.verdict in ("weights", "undetermined", "mixed", "service")
    assert found.table.height == 4
    assert isinstance(results.table, pl.DataFrame)
