"""Run a plan against an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import secrets
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._journal import Journal
from ledgerkit.loadtest._limits import Limits
from ledgerkit.loadtest._prompts import Prompts
from ledgerkit.loadtest._schema import (
    CELL_COLUMNS,
    REQUEST_COLUMNS,
    Results,
    parquet_path,
    shaped,
)
from ledgerkit.loadtest._steps import cell_row

if TYPE_CHECKING:
    import httpx

    from ledgerkit.loadtest._metrics import Sampler
    from ledgerkit.loadtest._plan import Cell, Plan
    from ledgerkit.loadtest._server import Kind, Server
    from ledgerkit.loadtest._stream import Answer

__all__ = ["run", "run_async"]

Progress = Callable[[int, int, str], None]
_HOPELESS = 3
"""Bursts in a row without one answer after which the test stops."""


@dataclass
class _Test:
    """What one test needs to hand around."""

    plan: Plan
    client: httpx.AsyncClient
    server: Server
    prompts: Prompts
    limits: Limits
    journal: Journal
    sampler: Sampler
    stop: threading.Event
    key: str | None
    began: float
    warmup_failures: list[str] = field(default_factory=list)


def run(plan: Plan, base_url: str, **options: Any) -> Results:
    """Measure every cell of a plan; see ``run_async`` for the options.

    Works in scripts and in notebooks (where a loop is running already, the test gets a thread of
    its own). What is finished when it is interrupted stays in the journal beside ``out``.

    Parameters
    ----------
    plan : Plan
    base_url : str
        Server, with or without ``/v1``.
    **options
        Of ``run_async``.

    Returns
    -------
    Results
    """
    stop = options.setdefault("stop", threading.Event())
    if not isinstance(stop, threading.Event):
        raise LoadTestError(
            "stop must be a threading.Event", given=stop, allowed="a threading.Event"
        )
    outcome: list[Results | BaseException] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(run_async(plan, base_url, **options)))
        except BaseException as problem:  # noqa: BLE001  raised again in the caller's thread
            outcome.append(problem)

    thread = threading.Thread(target=work, name="ledgerkit-loadtest", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(timeout=0.2)
    except KeyboardInterrupt:
        stop.set()
        thread.join()
        raise
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


async def run_async(
    plan: Plan,
    base_url: str,
    *,
    kind: Kind = "completions",
    served_model: str | None = None,
    out: str | Path | None = None,
    resume: bool = True,
    api_key_env: str | None = "OPENAI_API_KEY",
    limits: Limits | None = None,
    metrics_url: str | None = "auto",
    memory: Callable[[], float | None] | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
    token_ids: bool | None = None,
    extra_body: dict[str, Any] | None = None,
    verify: bool | str = True,
    trust_env: bool = False,
) -> Results:
    """Measure every cell of a plan.

    A run of a cell is one burst: all its requests start together, stream, and are timed by the
    monotonic clock of this process. Tokens are counted by the server's ``usage``.

    Parameters
    ----------
    plan : Plan
    base_url : str
        Server, with or without ``/v1``.
    kind : {"completions", "chat"}
        ``/v1/completions`` or ``/v1/chat/completions``.
    served_model : str, optional
        Name in the requests; default: the only model that the server lists.
    out : path, optional
        Parquet file to write when the test is finished; until then a journal lies beside it, which
        ``read`` understands. Without it results are only returned.
    resume : bool
        Continue the unfinished test beside ``out``.
    api_key_env : str or None
        Environment variable that holds the key; it is sent and nowhere kept.
    limits : Limits, optional
        Timeouts and retries.
    metrics_url : str or None
        Prometheus page; ``"auto"`` tries ``/metrics``; None asks nothing.
    memory : callable, optional
        Returns the bytes in use on the fullest device; called about twice a second.
    progress : callable, optional
        ``progress(done, total, cell)`` after each run of a cell.
    stop : threading.Event, optional
        Set it to end the test early; what is finished is returned, and stays in the journal.
    token_ids : bool, optional
        Send prompts as token ids (exact lengths); default: where the plan knows the vocabulary.
    extra_body : dict, optional
        Further fields of every request.
    verify : bool or str
        TLS: True, False, or the path of a CA bundle.
    trust_env : bool
        Use the proxies of the environment.

    Returns
    -------
    Results

    Raises
    ------
    LoadTestError
        The server cannot be used at all. Failures of single requests are recorded instead.
    """
    try:
        import httpx
    except ImportError:
        raise LoadTestError(
            "running a load test needs httpx",
            allowed="an environment with the extra loadtest",
            fix='pip install "ledgerkit-llm[loadtest]"',
        ) from None
    from ledgerkit.loadtest._metrics import Sampler
    from ledgerkit.loadtest._server import Server, endpoint, get_ready, model_name, secret

    _check(plan, limits, memory=memory, progress=progress)
    root, key, bounds = endpoint(base_url), secret(api_key_env), limits or Limits()
    if kind not in ("completions", "chat"):
        raise LoadTestError("unknown endpoint", given=kind, allowed="completions, chat")
    target = None if out is None else parquet_path(out)
    if target is not None and target.exists():
        raise LoadTestError(
            "the result file exists",
            given=str(target),
            allowed="a name that is free",
            fix="name another one",
        )
    fields = _json_fields(extra_body)
    journal = Journal.beside(target, plan.fingerprint, resume=resume)
    headers = {"Accept-Encoding": "identity"}  # a compressed stream would arrive in lumps
    if key:
        headers["Authorization"] = f"Bearer {key}"
    pool = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    async with httpx.AsyncClient(
        headers=headers, limits=pool, verify=_tls(verify), trust_env=trust_env
    ) as client:
        name = served_model or await model_name(client, root, key)
        with_ids = plan.vocab_size is not None if token_ids is None else token_ids
        server = Server(
            root, kind, name, token_ids=with_ids and kind == "completions", extra=fields
        )
        nonce = secrets.token_hex(8)  # a second test must not meet the prompts of the first
        prompts = Prompts(plan.seed, nonce, plan.vocab_size)
        server, prompts = await get_ready(client, server, prompts, bounds, key)
        page = f"{root}/metrics" if metrics_url == "auto" else metrics_url
        test = _Test(
            plan=plan, client=client, server=server, prompts=prompts, limits=bounds,
            journal=journal, sampler=Sampler(client, page, memory), stop=stop or threading.Event(),
            key=key, began=time.monotonic(),
        )  # fmt: skip
        measured = await test.sampler.probe()
        started = datetime.now(UTC)
        ended = await _all_cells(test, progress)
    results = _results(test, started, ended, metrics=measured)
    if target is not None and ended == "finished":
        results.save(target)
        journal.close()
    return results


def _check(plan: Any, limits: Any, **functions: Any) -> None:
    """Refuse what could only fail later, in the middle of a test."""
    from ledgerkit.loadtest._plan import Plan

    if not isinstance(plan, Plan):
        raise LoadTestError(
            "a test runs a plan",
            given=type(plan).__name__,
            allowed="what lk.loadtest.plan returns",
            fix="lk.loadtest.plan(...)",
        )
    if limits is not None and not isinstance(limits, Limits):
        raise LoadTestError(
            "limits must be lk.loadtest.Limits", given=limits, allowed="lk.loadtest.Limits"
        )
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise LoadTestError(
                f"{name} must be a function", given=function, allowed="a function, or None"
            )


def _json_fields(given: dict[str, Any] | None) -> dict[str, Any]:
    try:
        fields = json.loads(json.dumps(given or {}, allow_nan=False))
    except (TypeError, ValueError) as problem:
        raise LoadTestError(
            "extra_body cannot be sent as JSON",
            given=given,
            allowed="values that JSON holds",
            fix=str(problem),
        ) from None
    if not isinstance(fields, dict):
        raise LoadTestError(
            "extra_body must be a dict of fields",
            given=given,
            allowed="a dict of fields of the request",
        )
    return fields


def _tls(verify: bool | str) -> Any:  # noqa: FBT001  mirrors httpx
    if not isinstance(verify, str):
        return verify
    import ssl

    try:
        return ssl.create_default_context(cafile=verify)
    except OSError as problem:
        raise LoadTestError(
            "the CA bundle cannot be read",
            given=verify,
            allowed="a file of certificates",
            fix=str(problem),
        ) from None


async def _all_cells(test: _Test, progress: Progress | None) -> str:
    """Run the bursts in their order; returns why it ended."""
    for i in range(test.plan.warmup):
        cell = test.plan.cells[0]
        answer = await _until_stopped(test, _request(test, cell, ("warmup", i)))
        if answer is not None and answer.status != "ok":
            test.warmup_failures.append(f"{answer.status}: {answer.error}")
    total, hopeless = len(test.plan.order), 0
    done = test.journal.done
    for order, (place, repeat) in enumerate(test.plan.order):
        cell = test.plan.cells[place]
        if test.stop.is_set():
            return "stopped"
        if (cell.name, repeat) not in done:
            finished = await _until_stopped(test, _burst(test, cell, repeat, order))
            if finished is None:
                return "stopped"
            hopeless = 0 if finished else hopeless + 1
            if hopeless >= _HOPELESS:
                return f"given up: {_HOPELESS} runs without an answer"
        if progress is not None:
            progress(order + 1, total, cell.name)
    return "finished"


async def _until_stopped(test: _Test, work: Coroutine[Any, Any, Any]) -> Any:
    """Await work, or cancel it when the test is stopped (then None)."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait({task}, timeout=0.1)
        if test.stop.is_set() and not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            return None
    return task.result()


async def _burst(test: _Test, cell: Cell, repeat: int, order: int) -> bool:
    """Run one cell once; True where something was answered."""
    names = {
        "cell": cell.name,
        "run": repeat,
        "order": order,
        "prompt_tokens": cell.prompt_tokens,
        "concurrency_requested": cell.concurrency,
    }
    rows: list[dict[str, Any]] = []

    async def one(i: int) -> float | None:
        answer = await _request(test, cell, (cell.name, repeat, i))
        row = _row(test, cell, names, i, answer)
        rows.append(row)
        test.journal.request(row)
        return answer.engine_itl_s

    async with test.sampler as sampler:
        told = await asyncio.gather(*(one(i) for i in range(cell.concurrency)))
    window = sampler.window()
    own = [time_s for time_s in told if time_s is not None]
    test.journal.cell(
        cell_row(
            rows,
            names,
            {
                "engine_itl_s": sum(own) / len(own) if own else window.engine_itl_s,
                "running_max": window.running_max,
                "preemptions": window.preemptions,
                "prefix_hits": window.prefix_hits,
                "kv_usage_peak": window.kv_usage_peak,
                "peak_memory_bytes": window.peak_memory_bytes,
            },
        )
    )
    return any(row["status"] == "ok" for row in rows)


async def _request(test: _Test, cell: Cell, name: tuple[object, ...]) -> Answer:
    """One request with its retries."""
    from ledgerkit.loadtest._stream import stream_patiently

    def body(attempt: int) -> dict[str, Any]:
        prompt = test.server.prompt(test.prompts, cell.prompt_tokens, *name, attempt)
        return test.server.body(prompt, cell.output_tokens)

    return await stream_patiently(test.client, test.server.url, body, test.limits, hide=test.key)


def _row(
    test: _Test, cell: Cell, names: dict[str, Any], number: int, answer: Answer
) -> dict[str, Any]:
    known = asdict(answer)
    return {
        "cell": names["cell"],
        "run": names["run"],
        "order": names["order"],
        "prompt_tokens_requested": cell.prompt_tokens,
        "output_tokens_requested": cell.output_tokens,
        "concurrency_requested": cell.concurrency,
        "request": number,
        **{name: known[name] for name in REQUEST_COLUMNS if name in known},
        "start_s": answer.start_s - test.began,
    }


def _results(test: _Test, started: datetime, ended: str, *, metrics: bool) -> Results:
    from ledgerkit import __version__

    requests = pl.DataFrame(test.journal.requests, schema=REQUEST_COLUMNS)
    cells = pl.DataFrame(test.journal.cells, schema=CELL_COLUMNS)
    provenance = {
        "tool": "ledgerkit",
        "version": __version__,
        "plan": test.plan.record(),
        "server": {
            "root": test.server.root, "kind": test.server.kind, "model": test.server.model,
            "left_out": list(test.server.left_out), "token_ids": test.server.token_ids,
            "metrics": metrics,
        },
        "limits": asdict(test.limits),
        "salt": test.prompts.salt,
        "started": started.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "end": ended,
        "memory_error": test.sampler.memory_error,
        "warmup_failures": test.warmup_failures,
        "client": {"python": platform.python_version(), "system": platform.system(),
                   "cpus": os.cpu_count()},
    }  # fmt: skip
    return Results(shaped(requests, REQUEST_COLUMNS), shaped(cells, CELL_COLUMNS), provenance)
