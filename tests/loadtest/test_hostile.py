"""The client never hangs, never loses a finished request, and says what happened."""

import asyncio
import socket
import threading
import time

import httpx
import pytest

import ledgerkit as lk
from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._run import _HOPELESS
from ledgerkit.loadtest._stream import stream_once
from tests.loadtest.hostile import serving

LIMITS = lk.loadtest.Limits(connect_s=1, first_token_s=1, stall_s=0.5, request_s=2, retries=1)
BODY = {"model": "tiny", "prompt": "a b c", "max_tokens": 8, "stream": True}


@pytest.fixture(scope="module")
def server():
    with serving() as found:
        yield found


def ask(url, limits=LIMITS):
    async def one():
        async with httpx.AsyncClient(trust_env=False) as client:
            return await stream_once(client, url, BODY, limits)

    began = time.monotonic()
    answer = asyncio.run(one())
    assert time.monotonic() - began < 8, "the client hung"
    return answer


@pytest.mark.parametrize(
    ("mode", "status", "says"),
    [
        ("slow", "first_token_timeout", "1 s"),
        ("stalls", "stalled", "0.5 s"),
        ("drips", "request_timeout", "2 s"),
        ("error_500", "http_error", "boom"),
        ("rate_limits", "http_error", "429"),
        ("rejects", "http_error", "401"),
        ("html", "not_a_stream", "text/html"),
        ("redirects", "http_error", "302"),
        ("truncates", "closed_early", "4"),
        ("closes_early", "closed_early", ""),
        ("closes_at_once", "closed_early", ""),
        ("bad_json", "bad_stream", "not JSON"),
        ("reports_error", "server_error", "out of memory"),
        ("endless_line", "bad_stream", "line"),
        ("empty", "no_tokens", "no token"),
        ("deep", "bad_stream", "not JSON"),
        ("digits", "bad_stream", "not JSON"),
        ("bad_utf8", "bad_stream", "not JSON"),
        ("floods", "bad_stream", "far beyond"),
        ("odd_wait", "http_error", "429"),
    ],
)
def test_what_went_wrong_is_named(server, mode, status, says):
    answer = ask(server.url(mode) + "/v1/completions")
    assert answer.status == status
    assert says in answer.error
    assert answer.e2e_s is not None


@pytest.mark.parametrize("mode", ["stalls", "truncates", "closes_early", "drips", "bad_json"])
def test_pieces_before_the_break_are_kept(server, mode):
    answer = ask(server.url(mode) + "/v1/completions")
    assert len(answer.chunk_times_s) >= 2
    assert answer.ttft_s == answer.chunk_times_s[0]


def test_a_legal_but_odd_stream_is_understood(server):
    answer = ask(server.url("odd_but_legal") + "/v1/completions")
    assert (answer.status, answer.output_tokens, answer.tokens_from) == ("ok", 8, "usage")
    assert len(answer.chunk_times_s) == 4


@pytest.mark.parametrize("mode", ["no_usage", "counts_too_few", "counts_too_many"])
def test_counts_that_cannot_be_are_replaced_by_pieces(server, mode):
    answer = ask(server.url(mode) + "/v1/completions")
    assert (answer.status, answer.output_tokens, answer.tokens_from) == ("ok", 8, "chunks")
    assert mode == "no_usage" or "pieces are counted" in answer.error


def test_values_that_no_column_holds_are_left_out(server):
    answer = ask(server.url("odd_values") + "/v1/completions")
    assert (answer.status, answer.output_tokens, answer.tokens_from) == ("ok", 8, "usage")
    assert answer.prompt_tokens is None
    assert answer.cached_tokens is None
    assert answer.finish_reason is None
    results = lk.loadtest.run(plan(), server.url("odd_values"), limits=LIMITS)
    assert results.failures.is_empty()
    assert lk.loadtest.diagnose(results).verdict == "undetermined"


def test_events_are_utf8_whatever_the_header_says(server):
    answer = ask(server.url("odd_charset") + "/v1/completions")
    assert (answer.status, answer.output_tokens) == ("ok", 8)


def test_a_wrong_count_of_the_prompt_is_noticed(server):
    results = lk.loadtest.run(plan(), server.url("miscounts_prompts"), limits=LIMITS)
    keys = {finding.key for finding in lk.loadtest.diagnose(results).findings}
    assert "prompt_not_as_asked" in keys


@pytest.mark.parametrize("mode", ["list_drips", "list_floods", "list_deep", "list_html"])
def test_a_list_of_models_that_is_none(server, mode, monkeypatch):
    monkeypatch.setattr("ledgerkit.loadtest._server._LIST_S", 0.5)
    began = time.monotonic()
    with pytest.raises(LoadTestError, match="list its models"):
        lk.loadtest.run(plan(), server.url(mode), limits=LIMITS)
    assert time.monotonic() - began < 8
    with pytest.raises(LoadTestError, match="served_model"):
        lk.loadtest.run(plan(), server.url("list_odd"), limits=LIMITS)


def test_a_metrics_page_without_end_is_not_asked_again(server):
    results = lk.loadtest.run(plan(), server.url("metrics_flood"), limits=LIMITS)
    assert results.provenance["server"]["metrics"] is False
    assert results.failures.is_empty()


def test_a_rate_limit_at_the_first_request_is_waited_for(server):
    server.counts["recovers"] = 0  # the first request, a probe, is refused
    results = lk.loadtest.run(
        plan(concurrencies=[1]), server.url("recovers"), limits=LIMITS, served_model="tiny"
    )
    assert results.failures.is_empty()


def test_failed_warm_up_requests_are_recorded(server):
    server.counts.pop("dies_later", None)
    results = lk.loadtest.run(
        plan(warmup=9), server.url("dies_later"), limits=LIMITS, served_model="tiny"
    )
    assert results.provenance["warmup_failures"]
    assert all(text.startswith("closed_early") for text in results.provenance["warmup_failures"])


def test_nobody_listens():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    answer = ask(f"http://127.0.0.1:{port}/v1/completions")
    assert answer.status == "refused"
    assert answer.may_retry


def test_tls_to_a_plain_server(server):
    answer = ask(f"https://127.0.0.1:{server.port}/good/v1/completions")
    assert answer.status == "tls"
    assert not answer.may_retry


def test_a_server_that_refuses_the_handshake():
    alert = b"\x15\x03\x03\x00\x02\x02\x28"  # fatal, handshake_failure
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse():
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(alert)

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        answer = ask(f"https://127.0.0.1:{listener.getsockname()[1]}/v1/completions")
        thread.join(5)
    assert answer.status == "tls"


def test_a_server_that_accepts_and_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = ask(f"http://127.0.0.1:{listener.getsockname()[1]}/v1/completions")
    assert answer.status == "first_token_timeout"


def plan(**options):
    given = {"contexts": [16], "concurrencies": [2], "output_tokens": 8, "runs": 2, "warmup": 0}
    return lk.loadtest.plan(**{**given, **options})


def test_refused_fields_are_given_up_one_after_another(server):
    results = lk.loadtest.run(
        plan(model="smollm2-135m"), server.url("strict"), limits=LIMITS, token_ids=True
    )
    assert results.failures.is_empty()
    assert results.provenance["server"]["left_out"] == ["ignore_eos", "min_tokens"]
    assert results.provenance["server"]["token_ids"] is False


def test_a_passing_error_is_tried_again_and_counted(server):
    server.counts["recovers"] = 1  # the probe is answered at once
    results = lk.loadtest.run(
        plan(concurrencies=[1]), server.url("recovers"), limits=LIMITS, served_model="tiny"
    )
    assert results.failures.is_empty()
    assert max(results.requests["attempts"]) == 2


def test_a_server_that_never_answers_is_an_error_before_the_test(server):
    with pytest.raises(LoadTestError, match="first_token_timeout"):
        lk.loadtest.run(plan(), server.url("slow"), limits=LIMITS)


def test_finished_requests_survive_a_server_that_dies(server, tmp_path):
    out = tmp_path / "test.parquet"
    server.counts.pop("dies_later", None)
    results = lk.loadtest.run(
        plan(runs=9), server.url("dies_later"), limits=LIMITS, served_model="tiny", out=out
    )
    good = results.requests.filter(results.requests["status"] == "ok")
    assert good.height >= 4
    assert set(results.failures["status"]) == {"closed_early"}
    assert results.provenance["end"].startswith("given up")
    assert results.cells.height < 19
    dead = results.cells.filter(results.cells["failed"] == 2)
    assert dead.height == _HOPELESS
    assert dead["itl_s"].null_count() == dead.height
    kept = lk.loadtest.read(out.with_name("test.parquet.journal.jsonl"))
    assert kept.requests.height == results.requests.height


def test_failed_cells_do_not_reach_the_fit(server):
    server.counts.pop("dies_later", None)
    results = lk.loadtest.run(
        plan(runs=9), server.url("dies_later"), limits=LIMITS, served_model="tiny"
    )
    found = lk.loadtest.diagnose(results)
    assert found.verdict == "undetermined"
    assert {"no_step_time", "failed_requests"} & {finding.key for finding in found.findings}
