"""One streaming request: sent, timed, counted; whatever happens becomes a record, never a hang."""

from __future__ import annotations

import asyncio
import json
import math
import ssl
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ledgerkit.loadtest._limits import Limits

__all__ = ["Answer", "stream_once"]

_LONGEST_LINE = 1 << 20
_SPARE_PIECES = 1000
_MOST_TOKENS = 1 << 40  # counts beyond it are no counts
_DONE = b"[DONE]"


@dataclass
class Answer:
    """What came back, or did not."""

    status: str = "ok"
    error: str | None = None
    http_status: int | None = None
    attempts: int = 1
    start_s: float = 0.0
    ttft_s: float | None = None
    e2e_s: float | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    tokens_from: str | None = None
    finish_reason: str | None = None
    chunk_times_s: list[float] = field(default_factory=list)
    engine_itl_s: float | None = None
    """Time per token by the server's own account (llama.cpp: ``timings``)."""
    retry_after_s: float | None = None

    @property
    def may_retry(self) -> bool:
        """Nothing was answered yet, and another attempt may help."""
        passing = self.http_status in {408, 425, 429, 500, 502, 503, 504}
        unreached = self.status in {"refused", "connect_timeout"}
        return not self.chunk_times_s and (unreached or (self.status == "http_error" and passing))


class _StreamError(Exception):
    def __init__(self, status: str, error: str) -> None:
        super().__init__(error)
        self.status, self.error = status, error


async def stream_once(
    client: httpx.AsyncClient,
    url: str,
    body: dict[str, Any],
    limits: Limits,
    clock: Callable[[], float] = time.monotonic,
    hide: str | None = None,
) -> Answer:
    """Send one request and read its stream to the end.

    Parameters
    ----------
    client : httpx.AsyncClient
    url : str
    body : dict
        JSON of the request.
    limits : Limits
    clock : callable
        Monotonic seconds.
    hide : str, optional
        A secret that servers may send back, and that no record may show.

    Returns
    -------
    Answer
        Always; ``status`` says what happened: ``ok``, ``http_error``, ``not_a_stream``,
        ``bad_stream``, ``server_error``, ``closed_early``, ``no_tokens``, ``refused``,
        ``connect_timeout``, ``first_token_timeout``, ``stalled``, ``request_timeout``, ``tls``,
        ``network``, ``cancelled``.
    """
    answer = Answer(start_s=clock())
    try:
        async with asyncio.timeout(limits.request_s):
            await _read(client, url, body, limits, clock, answer)
    except TimeoutError:
        answer.status, answer.error = "request_timeout", f"not done after {limits.request_s:g} s"
    except asyncio.CancelledError:
        answer.status, answer.error = "cancelled", "the test was stopped"
        raise
    except _StreamError as problem:
        answer.status, answer.error = problem.status, problem.error
    except httpx.ConnectTimeout:
        answer.status = "connect_timeout"
        answer.error = f"no connection within {limits.connect_s:g} s"
    except httpx.ConnectError as problem:
        answer.status = "tls" if _is_tls(problem) else "refused"
        answer.error = str(problem) or "connection refused"
    except (httpx.RemoteProtocolError, httpx.ReadError) as problem:
        answer.status, answer.error = "closed_early", str(problem) or "connection closed"
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as problem:
        answer.status, answer.error = "network", f"{type(problem).__name__}: {problem}"
    finally:
        answer.e2e_s = clock() - answer.start_s
    _count(answer, body)
    if hide:
        answer.error = answer.error and answer.error.replace(hide, "***")
        answer.finish_reason = answer.finish_reason and answer.finish_reason.replace(hide, "***")
    return answer


async def stream_patiently(
    client: httpx.AsyncClient,
    url: str,
    bodies: Callable[[int], dict[str, Any]],
    limits: Limits,
    *,
    hide: str | None = None,
) -> Answer:
    """Send a request, and again where that may help (refused, 429, 5xx), a bounded number of times.

    Parameters
    ----------
    client : httpx.AsyncClient
    url : str
    bodies : callable
        JSON of the request by number of the attempt, from 1: a prompt is not sent twice.
    limits : Limits
    hide : str, optional
        As for ``stream_once``.
    """
    for attempt in range(1, limits.retries + 2):
        answer = await stream_once(client, url, bodies(attempt), limits, hide=hide)
        answer.attempts = attempt
        if not answer.may_retry or attempt > limits.retries:
            break
        wait = answer.retry_after_s if answer.retry_after_s is not None else 0.5 * 2**attempt
        await asyncio.sleep(min(wait, limits.longest_wait_s))
    return answer


def _is_tls(problem: BaseException) -> bool:
    seen: BaseException | None = problem
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return True
        seen = seen.__cause__ or seen.__context__
    return "SSL" in str(problem) or "TLS" in str(problem)


async def _read(
    client: httpx.AsyncClient,
    url: str,
    body: dict[str, Any],
    limits: Limits,
    clock: Callable[[], float],
    answer: Answer,
) -> None:
    timeout = httpx.Timeout(limits.first_token_s, connect=limits.connect_s)
    try:
        async with client.stream("POST", url, json=body, timeout=timeout) as response:
            answer.http_status = response.status_code
            if response.status_code != 200:
                await _refused(response, answer)
            kind = response.headers.get("content-type", "")
            if "text/event-stream" not in kind:
                text = await _beginning(response)
                raise _StreamError("not_a_stream", f"content-type {kind or 'missing'}: {text}")
            most = 2 * int(body.get("max_tokens") or 0) + _SPARE_PIECES
            await _events(response, limits, clock, answer, most)
    except httpx.TimeoutException as problem:
        if isinstance(problem, httpx.ConnectTimeout):
            raise
        waited = f"nothing within {limits.first_token_s:g} s"
        raise _StreamError("first_token_timeout", waited) from problem


async def _beginning(response: httpx.Response, most: int = 300) -> str:
    """First characters of a body, for the record."""
    found = b""
    try:
        async with asyncio.timeout(5.0):
            async for piece in response.aiter_bytes():
                found += piece
                if len(found) >= most:
                    break
    except (TimeoutError, httpx.HTTPError):
        pass  # what was read so far is all that the record can show
    return " ".join(found[:most].decode("utf-8", "replace").split())


async def _refused(response: httpx.Response, answer: Answer) -> None:
    wait = response.headers.get("retry-after", "")
    answer.retry_after_s = float(wait) if wait.isascii() and wait.isdigit() else None
    text = await _beginning(response)
    raise _StreamError("http_error", f"HTTP {response.status_code}: {text}")


async def _events(
    response: httpx.Response,
    limits: Limits,
    clock: Callable[[], float],
    answer: Answer,
    most: int,
) -> None:
    finished = False
    pieces = _lines(response).__aiter__()
    while True:
        begun = bool(answer.chunk_times_s)
        wait = limits.stall_s if begun else limits.first_token_s
        try:
            async with asyncio.timeout(wait):
                line = await pieces.__anext__()
        except StopAsyncIteration:
            break
        except TimeoutError:
            status = "stalled" if begun else "first_token_timeout"
            raise _StreamError(status, f"nothing for {wait:g} s") from None
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == _DONE:
            finished = True
            break
        _event(data, clock() - answer.start_s, answer)
        if len(answer.chunk_times_s) > most:
            raise _StreamError("bad_stream", f"more than {most} pieces, far beyond what was asked")
    if not finished and answer.finish_reason is None:
        raise _StreamError("closed_early", f"the stream ended after {len(answer.chunk_times_s)}")


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """Lines of a stream, with a bound on their length; events are UTF-8 whatever a header says."""
    held: list[bytes] = []  # pieces of an unfinished line; only new ones are searched for its end
    size = 0
    async for piece in response.aiter_bytes():
        *whole, rest = piece.split(b"\n")
        for line in whole:
            yield (b"".join(held) + line).rstrip(b"\r")
            held, size = [], 0
        held.append(rest)
        size += len(rest)
        if size > _LONGEST_LINE:
            raise _StreamError("bad_stream", f"a line of more than {_LONGEST_LINE} characters")
    if size:
        yield b"".join(held)


def _event(data: bytes, at_s: float, answer: Answer) -> None:
    begins = data[:120].decode("utf-8", "replace")
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):  # no JSON, no UTF-8, too many digits, too deep
        raise _StreamError("bad_stream", f"not JSON: {begins}") from None
    if not isinstance(event, dict):
        raise _StreamError("bad_stream", f"not an object: {begins}")
    if event.get("error") or event.get("object") == "error":
        raise _StreamError("server_error", str(event.get("error") or event.get("message"))[:300])
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        if _holds_token(choice):
            answer.chunk_times_s.append(at_s)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            answer.finish_reason = reason[:80]
    _usage(event, answer)


def _holds_token(choice: dict[str, Any]) -> bool:
    """Whether a piece stands for a token: special tokens print as nothing, roles are no tokens."""
    delta = choice.get("delta")
    if isinstance(delta, dict):
        return any(delta.get(name) for name in ("content", "reasoning_content", "reasoning"))
    text = choice.get("text")
    return bool(text) or (text == "" and choice.get("finish_reason") is None)


def _usage(event: dict[str, Any], answer: Answer) -> None:
    usage = event.get("usage")
    if isinstance(usage, dict):
        answer.prompt_tokens = _whole(usage.get("prompt_tokens"))
        answer.output_tokens = _whole(usage.get("completion_tokens"))
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            answer.cached_tokens = _whole(details.get("cached_tokens"))
    timings = event.get("timings")
    if isinstance(timings, dict):
        spent, count = timings.get("predicted_ms"), _whole(timings.get("predicted_n"))
        if isinstance(spent, int | float) and 0 < spent < math.inf and count and count > 1:
            answer.engine_itl_s = min(spent, _MOST_TOKENS) / 1e3 / (count - 1)  # after the first


def _whole(value: object) -> int | None:
    """A count; None for what is none."""
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS
    return value if counts else None  # type: ignore[return-value]


def _count(answer: Answer, body: dict[str, Any]) -> None:
    """Decide whose count of tokens holds, and what an answer without tokens means."""
    pieces = len(answer.chunk_times_s)
    if pieces:
        answer.ttft_s = answer.chunk_times_s[0]
    elif answer.status == "ok":
        answer.status, answer.error = "no_tokens", "the answer holds no token"
    told, asked = answer.output_tokens, int(body.get("max_tokens") or 0)
    # a piece holds one token or more, and a server may not give more than was asked for
    if told is not None and pieces <= told + 1 and (not asked or told <= asked + 1):
        answer.tokens_from = "usage"
        return
    if told is not None and answer.status == "ok":
        answer.error = f"usage says {told} tokens, {pieces} pieces came: pieces are counted"
    answer.output_tokens, answer.tokens_from = (pieces, "chunks") if pieces else (None, None)
