"""Getting to know a server before it is tested: address, key, model name, what it accepts."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit, urlunsplit

from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._page import PageError, fetch
from ledgerkit.loadtest._stream import Answer, stream_patiently

if TYPE_CHECKING:
    import httpx

    from ledgerkit.loadtest._limits import Limits
    from ledgerkit.loadtest._prompts import Prompts

__all__ = ["Server", "endpoint", "secret"]

Kind = Literal["completions", "chat"]
_OPTIONAL = (
    ("min_tokens",),
    ("ignore_eos", "min_tokens"),
    ("stream_options", "ignore_eos", "min_tokens"),
    ("stream_options", "ignore_eos", "min_tokens", "temperature"),
)
"""Fields beyond the standard, in the order in which they are given up."""
_LIST_S = 10.0


def endpoint(base_url: str) -> str:
    """Check an address and cut it to its root, without ``/v1``.

    Raises
    ------
    LoadTestError
        It is no http(s) address, or carries a password.

    Examples
    --------
    >>> endpoint("http://localhost:8000/v1/")
    'http://localhost:8000'
    """
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (TypeError, ValueError, AttributeError):
        usable = False
    if not usable:
        raise LoadTestError("base_url must be an http or https address", given=base_url,
                            allowed="http://localhost:8000")  # fmt: skip
    if parts.username or parts.password or parts.query:
        raise LoadTestError(
            "base_url must not carry a user, a password or a query",
            allowed="http(s)://host:port and a path",
            fix="set the key in the variable that api_key_env names",
        )
    path = parts.path.rstrip("/").removesuffix("/v1")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def secret(name: str | None) -> str | None:
    """The key in an environment variable; None where none is named or set.

    Raises
    ------
    LoadTestError
        It holds what no header can carry, such as a line break; the key itself is not shown.
    """
    key = os.environ.get(name, "").strip() if name else ""
    if not (key.isascii() and key.isprintable()):
        raise LoadTestError(
            "this variable holds no key: it has line breaks or odd characters",
            given=name,
            allowed="one line of printable characters",
            fix="set it to the key alone",
        )
    return key or None


@dataclass(frozen=True)
class Server:
    """A server as the test will use it.

    Attributes
    ----------
    root : str
        Address without ``/v1``.
    kind : {"completions", "chat"}
    model : str
        Name that requests carry.
    left_out : tuple of str
        Fields that the server refused.
    token_ids : bool
        Whether prompts are sent as token ids.
    extra : dict
        Further fields of every request.
    """

    root: str
    kind: Kind
    model: str
    left_out: tuple[str, ...] = ()
    token_ids: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where requests go."""
        return (
            f"{self.root}/v1/{'completions' if self.kind == 'completions' else 'chat/completions'}"
        )

    def body(self, prompt: str | list[int], tokens: int) -> dict[str, Any]:
        """One request for exactly ``tokens`` tokens, as far as the server can be told."""
        asked: dict[str, Any] = {
            "model": self.model,
            "max_tokens": tokens,
            "min_tokens": tokens,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.kind == "completions":
            asked["prompt"] = prompt
        else:
            asked["messages"] = [{"role": "user", "content": prompt}]
        kept = {name: value for name, value in asked.items() if name not in self.left_out}
        return {**kept, **self.extra}

    def prompt(self, prompts: Prompts, tokens: int, *name: object) -> str | list[int]:
        """A prompt of its own for this name."""
        if self.token_ids:
            return prompts.token_ids(tokens, *name)
        return prompts.text(tokens, *name)


async def model_name(client: httpx.AsyncClient, root: str, hide: str | None) -> str:
    """The only model that a server lists.

    Raises
    ------
    LoadTestError
        The list cannot be read, or a choice must be made.
    """
    try:
        status, page = await fetch(client, f"{root}/v1/models", _LIST_S)
        listed = json.loads(page) if status == 200 else {}
    except (PageError, ValueError, RecursionError) as problem:
        raise LoadTestError(
            "the server does not list its models",
            given=str(problem)[:300],
            allowed="a server that answers /v1/models",
            fix="check base_url; or give served_model=",
        ) from None
    entries = listed.get("data") if isinstance(listed, dict) else None
    names = [
        str(entry["id"]).replace(hide or "\0", "***")
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and "id" in entry
    ]
    if len(names) == 1:
        return names[0]
    raise LoadTestError(
        "served_model= is needed",
        given=names[:20] or f"HTTP {status}",
        allowed="a name that the server lists",
        fix="name one of the models that the server lists",
    )


async def get_ready(
    client: httpx.AsyncClient, server: Server, prompts: Prompts, limits: Limits, hide: str | None
) -> tuple[Server, Prompts]:
    """Find out which fields a server takes, and how it counts tokens.

    Raises
    ------
    LoadTestError
        It does not answer a plain request either.
    """
    answer, server = await _first_answer(client, server, prompts, limits, hide)
    if answer.status != "ok":
        raise LoadTestError(
            "the server does not answer a test request",
            given=f"{answer.status}: {answer.error}",
            allowed="a server that answers /v1/chat/completions or /v1/completions",
            fix="check address, model name and key",
        )
    if server.token_ids:
        return server, prompts
    counted = {}
    for words in (64, 320):
        probe = replace(prompts, tokens_per_word=1.0, overhead_tokens=0.0)

        def body(attempt: int, words: int = words, probe: Prompts = probe) -> dict[str, Any]:
            return server.body(probe.text(words, "calibrate", words, attempt), 2)

        told = await stream_patiently(client, server.url, body, limits, hide=hide)
        if told.status == "ok" and told.prompt_tokens:
            counted[words] = told.prompt_tokens
    return server, prompts.calibrated(counted) if len(counted) == 2 else prompts


async def _first_answer(
    client: httpx.AsyncClient, server: Server, prompts: Prompts, limits: Limits, hide: str | None
) -> tuple[Answer, Server]:
    """Send ever plainer requests until one is accepted."""
    answer = Answer(status="unsent")
    forms = [server.token_ids, False] if server.token_ids else [False]
    for ids in forms:
        for left_out in ((), *_OPTIONAL):
            trial = replace(server, token_ids=ids, left_out=left_out)

            def body(attempt: int, trial: Server = trial) -> dict[str, Any]:
                name = ("probe", len(trial.left_out), attempt)
                return trial.body(trial.prompt(prompts, 32, *name), 4)

            answer = await stream_patiently(client, trial.url, body, limits, hide=hide)
            if answer.status == "ok":
                return answer, trial
            if answer.http_status not in (400, 415, 422):
                return answer, trial
    return answer, server
