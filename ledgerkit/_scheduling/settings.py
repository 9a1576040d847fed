"""What each setting of a mechanism takes, checked before anything is computed with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ledgerkit.errors import DeploymentError
from ledgerkit.spec._base import finite_number, whole_number

__all__ = ["checked"]

Check = Callable[[str, Any], Any]
_MOST_STEPS: Final = 10_000
"""Of an agent, and drafts of a step: each is priced by itself."""


def _one_of(name: str, given: Any, names: tuple[str, ...]) -> str:
    if not isinstance(given, str) or given not in names:
        raise DeploymentError(f"unknown {name}", given=given, allowed=", ".join(names),
                              fix=f"use {name}={names[0]!r}")  # fmt: skip
    return given


_whole = partial(whole_number, DeploymentError)
_number = partial(finite_number, DeploymentError)
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
    "hidden_share": partial(_number, most=1.0),
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
