"""What each setting of a mechanism takes, checked before anything is computed with it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ledgerkit.errors import DeploymentError
from ledgerkit.spec._base import LARGEST

__all__ = ["checked"]

Check = Callable[[str, Any], Any]
_FASTEST: Final = 1e24
_MOST_STEPS: Final = 10_000
"""Of an agent, and drafts of a step: each is priced by itself."""


def _refused(name: str, given: Any, allowed: str) -> DeploymentError:
    return DeploymentError(
        f"{name} is out of range", given=given, allowed=allowed, fix=f"give {name}= {allowed}"
    )


def _whole(name: str, given: Any, least: int = 1, most: int = LARGEST) -> int:
    """Take a whole number of any library, but no flag."""
    allowed = f"a whole number, at least {least}"
    if most < LARGEST:
        allowed += f" and at most {most}"
    try:
        found = operator.index(given)
    except TypeError:
        raise _refused(name, given, allowed) from None
    if isinstance(given, bool) or not least <= found <= most:
        raise _refused(name, given, allowed)
    return found


def _number(name: str, given: Any, least: float = 0.0, *, above: bool = False) -> float:
    """Take a finite number, ``above`` its least or from there on."""
    allowed = f"a number, {'above' if above else 'at least'} {least:g}"
    if not above and least == 0.0:
        allowed = "a number, 0 or more"
    try:
        found = math.nan if isinstance(given, bool | str | bytes) else float(given)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not least <= found <= _FASTEST or (above and found == least):
        raise _refused(name, given, allowed)
    return found


def _one_of(name: str, given: Any, names: tuple[str, ...]) -> str:
    if not isinstance(given, str) or given not in names:
        raise DeploymentError(f"unknown {name}", given=given, allowed=", ".join(names),
                              fix=f"use {name}={names[0]!r}")  # fmt: skip
    return given


_RATE: Final = partial(_number, above=True)
_CHECKS: Final[Mapping[str, Check]] = {
    "schedule_s": _number,
    "max_model_len": _whole,
    "match_tokens": partial(_whole, least=0),
    "block_size": _whole,
    "restore_bytes_per_s": _RATE,
    "chunk_tokens": _whole,
    "draft_tokens": partial(_whole, least=0, most=_MOST_STEPS),
    "skew": partial(_number, least=1.0),
    "nodes": partial(_whole, most=_MOST_STEPS),
    "node_limit": _whole,
    "kernels": partial(_one_of, names=("normal", "low_latency")),
    "most_tokens": _whole,
    "how": partial(_one_of, names=("stream", "in_place")),
    "link_bytes_per_s": _RATE,
    "host_bytes_per_s": _number,
    "host_flop_per_s": _number,
    "sync_s": _number,
    "hidden_share": _number,
    "micro_batches": _whole,
    "tool_tokens": partial(_whole, least=0),
    "policy": partial(_one_of, names=("trim", "summarise", "keep")),
    "steps": partial(_whole, most=_MOST_STEPS),
    "keep": partial(_whole, least=0),
    "stub_tokens": partial(_whole, least=0),
    "every": _whole,
    "summary_tokens": _whole,
}


def checked(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Check settings of one mechanism; None stands for a default that is None.

    Raises
    ------
    DeploymentError
        A value is of another kind, or out of range. The message names the setting.

    Examples
    --------
    >>> checked({"chunk_tokens": 512}, {"chunk_tokens": 512})
    {'chunk_tokens': 512}
    """
    return {
        name: value
        if name not in _CHECKS or (value is None and defaults[name] is None)
        else _CHECKS[name](name, value)
        for name, value in given.items()
    }
