"""A server that misbehaves on purpose: the first part of the path says how."""
# ruff: noqa: ARG002  every mode has the same signature

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager

PIECE_S = 0.002


def event(data) -> bytes:
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


def token(text=" a", finish=None) -> bytes:
    return event({"choices": [{"text": text, "index": 0, "finish_reason": finish}]})


def usage(prompt, completion, cached=0) -> bytes:
    return event(
        {
            "choices": [],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "prompt_tokens_details": {"cached_tokens": cached},
            },
        }
    )


class Hostile:
    """Answers over raw sockets, so that it can break every rule."""

    def __init__(self) -> None:
        self.port = 0
        self.seen: list[dict] = []
        self.headers: list[str] = []
        self.counts: dict[str, int] = {}
        self.running = 0
        self.most = 0
        self._writers: set[asyncio.StreamWriter] = set()

    def url(self, mode: str) -> str:
        return f"http://127.0.0.1:{self.port}/{mode}"

    async def handle(self, reader, writer) -> None:
        self._writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader, writer) -> bool:
        head = await reader.readexactly(1)
        if head == b"\x16":  # a TLS handshake: answered in plain HTTP, as plain servers do
            await self._plain(writer, 400, "plain HTTP only")
            return False
        head += await reader.readuntil(b"\r\n\r\n")
        text = head.decode("latin-1")
        self.headers.append(text)
        _, path, _ = text.split("\r\n", 1)[0].split(" ")
        size = 0
        for line in text.split("\r\n"):
            if line.lower().startswith("content-length:"):
                size = int(line.split(":")[1])
        body = json.loads(await reader.readexactly(size)) if size else {}
        mode, _, rest = path.lstrip("/").partition("/")
        if rest == "v1/models":
            return await self._models(writer, mode)
        if rest == "metrics":
            return await self._metrics(writer, mode)
        self.seen.append(body)
        self.counts[mode] = self.counts.get(mode, 0) + 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await getattr(self, f"mode_{mode}")(writer, body)
        finally:
            self.running -= 1

    async def _models(self, writer, mode) -> bool:
        if mode == "list_drips":
            await self._start(writer)
            await self._forever(writer, b" ", pause=0.05)
        if mode == "list_floods":
            await self._start(writer)
            await self._forever(writer, b" " * 65536)
        pages = {
            "list_deep": "[" * 100_000,
            "list_html": "<html>login</html>",
            "list_odd": '{"data": {"id": 5}}',
        }
        return await self._plain(
            writer, 200, pages.get(mode, json.dumps({"data": [{"id": "tiny"}]}))
        )

    async def _forever(self, writer, data, pause=0.0) -> None:
        while True:
            await self._send(writer, data)
            await asyncio.sleep(pause)

    async def _metrics(self, writer, mode) -> bool:
        if mode == "metrics_flood":
            await self._start(writer)
            await self._forever(writer, b"x" * 65536)
        if mode != "vllm":
            return await self._plain(writer, 404, "nothing here")
        page = (
            f'# HELP x y\nvllm:num_requests_running{{model_name="tiny"}} {self.running}.0\n'
            'vllm:kv_cache_usage_perc{model_name="tiny"} 0.25\n'
            'vllm:num_preemptions_total{model_name="tiny"} 0.0\n'
        )
        return await self._plain(writer, 200, page)

    async def _plain(self, writer, status, text, kind="application/json", extra="") -> bool:
        data = text.encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n"
            f"{extra}\r\n".encode("latin-1")
            + data
        )
        await writer.drain()
        return True

    async def _start(self, writer, kind="text/event-stream") -> None:
        writer.write(
            f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n"
            "transfer-encoding: chunked\r\n\r\n".encode()
        )
        await writer.drain()

    async def _send(self, writer, data: bytes) -> None:
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()

    async def _end(self, writer) -> bool:
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _tokens(self, writer, count, pause=PIECE_S) -> None:
        for _ in range(count):
            await asyncio.sleep(pause)
            await self._send(writer, token())

    @staticmethod
    def _prompt(body) -> int:
        prompt = body.get("prompt", "")
        return len(prompt) if isinstance(prompt, list) else len(prompt.split()) + 3

    # how it may behave ------------------------------------------------------------------------

    async def mode_good(self, writer, body) -> bool:
        await self._start(writer)
        await self._tokens(writer, body["max_tokens"] - 1)
        await self._send(writer, token(finish="length"))
        await self._send(writer, usage(self._prompt(body), body["max_tokens"]))
        await self._send(writer, event(b"[DONE]"))
        return await self._end(writer)

    mode_vllm = mode_metrics_flood = mode_good

    async def mode_odd_but_legal(self, writer, body) -> bool:
        """Comments, carriage returns, events cut across packets, two tokens in a piece."""
        await self._start(writer)
        for i in range(body["max_tokens"] // 2):
            await asyncio.sleep(PIECE_S)
            await self._send(writer, b": ping\r\n\r\n")
            whole = token(" two tokens").replace(b"\n\n", b"\r\n\r\n")
            cut = 5 + i % 20
            await self._send(writer, whole[:cut])
            await self._send(writer, whole[cut:])
        await self._send(writer, usage(self._prompt(body), body["max_tokens"]))
        await self._send(writer, event(b"[DONE]"))
        return await self._end(writer)

    async def mode_slow(self, writer, body) -> bool:
        await asyncio.sleep(30)
        return await self.mode_good(writer, body)

    async def mode_turns_slow(self, writer, body) -> bool:
        if self.counts["turns_slow"] > 6:
            await asyncio.sleep(30)
        return await self.mode_good(writer, body)

    async def mode_stalls(self, writer, body) -> bool:
        await self._start(writer)
        await self._tokens(writer, 3)
        await asyncio.sleep(30)
        return False

    async def mode_drips(self, writer, body) -> bool:
        await self._start(writer)
        await self._tokens(writer, 10_000, pause=0.05)
        return False

    async def mode_no_usage(self, writer, body) -> bool:
        await self._start(writer)
        await self._tokens(writer, body["max_tokens"])
        await self._send(writer, event(b"[DONE]"))
        return await self._end(writer)

    async def _lies(self, writer, body, told) -> bool:
        await self._start(writer)
        await self._tokens(writer, body["max_tokens"])
        await self._send(writer, usage(self._prompt(body), told))
        await self._send(writer, event(b"[DONE]"))
        return await self._end(writer)

    async def mode_counts_too_few(self, writer, body) -> bool:
        return await self._lies(writer, body, 1)

    async def mode_counts_too_many(self, writer, body) -> bool:
        return await self._lies(writer, body, 10**6)

    async def mode_miscounts_prompts(self, writer, body) -> bool:
        await self._start(writer)
        await self._tokens(writer, body["max_tokens"])
        await self._send(writer, usage(5, body["max_tokens"]))
        await self._send(writer, event(b"[DONE]"))
        return await self._end(writer)

    async def mode_odd_values(self, writer, body) -> bool:
        """Numbers that no column can hold, and kinds that nobody expects."""
        await self._start(writer)
        await self._send(writer, event({"choices": 5, "usage": [], "timings": 1}))
        await self._tokens(writer, body["max_tokens"] - 1)
        await self._send(writer, token(finish={"why": [1]}))
        await self._send(writer, usage(10**30, body["max_tokens"], cached=10**30))
        odd = event(b'{"timings": {"predicted_ms": 1' + b"0" * 400 + b', "predicted_n": 3}}')
        await self._send(writer, odd)
        await self._send(writer, event(b'{"timings": {"predicted_ms": NaN, "predicted_n": 3}}'))
        await self._send(writer, event(b"[DONE]"))
        return await self._end(writer)

    async def _ends_with(self, writer, data) -> bool:
        await self._start(writer)
        await self._tokens(writer, 2)
        await self._send(writer, event(data))
        return await self._end(writer)

    async def mode_deep(self, writer, body) -> bool:
        return await self._ends_with(writer, b"[" * 100_000)

    async def mode_digits(self, writer, body) -> bool:
        return await self._ends_with(writer, b'{"usage": ' + b"9" * 10_000 + b"}")

    async def mode_bad_utf8(self, writer, body) -> bool:
        return await self._ends_with(writer, b'{"choices": "\xff\xfe"}')

    async def mode_odd_charset(self, writer, body) -> bool:
        await self._start(writer, "text/event-stream; charset=hex")
        await self._tokens(writer, body["max_tokens"])
        await self._send(writer, usage(self._prompt(body), body["max_tokens"]))
        await self._send(writer, event(b"[DONE]"))
        return await self._end(writer)

    async def mode_floods(self, writer, body) -> bool:
        await self._start(writer)
        await self._forever(writer, 100 * token())
        return False

    async def mode_error_500(self, writer, body) -> bool:
        return await self._plain(writer, 500, '{"error": "boom"}')

    async def mode_recovers(self, writer, body) -> bool:
        if self.counts["recovers"] % 2:
            return await self._plain(writer, 503, "busy", extra="retry-after: 0\r\n")
        return await self.mode_good(writer, body)

    async def mode_rate_limits(self, writer, body) -> bool:
        return await self._plain(writer, 429, "slow down", extra="retry-after: 0\r\n")

    async def mode_odd_wait(self, writer, body) -> bool:
        return await self._plain(writer, 429, "slow down", extra="retry-after: \u00b2\r\n")

    async def mode_rejects(self, writer, body) -> bool:
        return await self._plain(writer, 401, '{"error": "bad key sk-very-secret"}')

    async def mode_strict(self, writer, body) -> bool:
        if "ignore_eos" in body or "min_tokens" in body:
            return await self._plain(writer, 400, '{"error": "unknown field"}')
        if isinstance(body.get("prompt"), list):
            return await self._plain(writer, 422, '{"error": "prompt must be text"}')
        return await self.mode_good(writer, body)

    async def mode_html(self, writer, body) -> bool:
        return await self._plain(writer, 200, "<html>login</html>", kind="text/html")

    async def mode_redirects(self, writer, body) -> bool:
        return await self._plain(writer, 302, "", extra="location: http://127.0.0.1:1/\r\n")

    async def mode_truncates(self, writer, body) -> bool:
        await self._start(writer)
        await self._tokens(writer, 4)
        return await self._end(writer)

    async def mode_closes_early(self, writer, body) -> bool:
        await self._start(writer)
        await self._tokens(writer, 4)
        return False

    async def mode_closes_at_once(self, writer, body) -> bool:
        return False

    async def mode_bad_json(self, writer, body) -> bool:
        await self._start(writer)
        await self._tokens(writer, 2)
        await self._send(writer, event(b'{"choices": [{"te'))
        return await self._end(writer)

    async def mode_reports_error(self, writer, body) -> bool:
        await self._start(writer)
        await self._tokens(writer, 2)
        await self._send(writer, event({"error": {"message": "out of memory"}}))
        return await self._end(writer)

    async def mode_endless_line(self, writer, body) -> bool:
        await self._start(writer)
        await self._send(writer, b"data: ")
        for _ in range(200):
            await self._send(writer, b"x" * 65536)
        return await self._end(writer)

    async def mode_empty(self, writer, body) -> bool:
        await self._start(writer)
        await self._send(writer, event(b"[DONE]"))
        return await self._end(writer)

    async def mode_dies_later(self, writer, body) -> bool:
        """Good for the first requests, gone afterwards."""
        if self.counts["dies_later"] > 8:
            return False
        return await self.mode_good(writer, body)


@contextmanager
def serving(**attributes):
    """Run the server in a thread of its own."""
    server = Hostile()
    for name, value in attributes.items():
        setattr(server, name, value)
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    stop = asyncio.Event()

    async def main() -> None:
        listener = await asyncio.start_server(server.handle, "127.0.0.1", 0, limit=1 << 24)
        server.port = listener.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        listener.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
