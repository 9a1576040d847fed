"""The state of an Explorer as the query of an address, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from ledgerkit._ledger import ledger
from ledgerkit.catalog.hardware import hardware as hardware_frame
from ledgerkit.catalog.models import model_slugs
from ledgerkit.errors import LedgerError
from ledgerkit.spec.cache import KV_DTYPES
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.precision import WEIGHT_DTYPES
from ledgerkit.text import get
from ledgerkit.widgets._base import LANGUAGES, THEMES
from ledgerkit.widgets._deployment import (
    AS_CHECKPOINT,
    DEPLOYMENT,
    TRAILS,
    WORKLOAD,
    DeploymentPanel,
)

_MOST: Final = 10_000_000
"""Of any number in a link; no device holds the cache of more tokens."""
_POINT: Final = ("model", "hardware", *DEPLOYMENT)


@dataclass(frozen=True)
class Link:
    """What a link asks for.

    Parameters
    ----------
    state : mapping
        Options of the widget.
    refused : tuple of (str, str)
        Names and values that cannot be used here.
    """

    state: Mapping[str, Any]
    refused: tuple[tuple[str, str], ...] = ()

    def problems(self, language: str) -> list[str]:
        """Say what was left out of the link.

        Parameters
        ----------
        language : {"zh", "en"}
        """
        return [
            get("widget.link.refused", language, name=name, value=value)
            for name, value in self.refused
        ]


def write_link(state: Mapping[str, Any]) -> str:
    """Write a state as the query of an address, without what is usual.

    Parameters
    ----------
    state : mapping
        Options by name; None stands for what the checkpoint has.

    Returns
    -------
    str
        Begins with a question mark.

    Examples
    --------
    >>> write_link({"model": "qwen3-8b", "tp": 2, "kv_dtype": "bf16", "language": "en"})
    '?model=qwen3-8b&tp=2&language=en'
    """
    usual = Deployment()
    kept = {
        name: AS_CHECKPOINT if value is None else value
        for name, value in state.items()
        if name == "tp" or name not in DEPLOYMENT or value != getattr(usual, name)
    }
    return f"?{urlencode(kept)}"


def read_link(query: str, defaults: Mapping[str, Any] | None = None) -> Link:
    """Read a query: what it names, and defaults for the rest.

    A link that names a model, a device or a layout says all of the deployment: defaults of it are
    for another one. Models are those of the catalogue, so that a link opens no file.

    Parameters
    ----------
    query : str
        As in an address, with or without its question mark.
    defaults : mapping, optional
        Options that hold where the link names none.

    Returns
    -------
    Link

    Examples
    --------
    >>> found = read_link("?model=qwen3-8b&tp=2&language=fr", {"model": "kimi-k2.6", "ep": 8})
    >>> found.state
    {'model': 'qwen3-8b', 'tp': 2}
    >>> found.problems("en")
    ['language=fr in the link cannot be used here: the default is shown.']
    """
    given: dict[str, Any] = {}
    refused: list[tuple[str, str]] = []
    meanings = _meanings()
    for name, value in parse_qsl(query.removeprefix("?"), keep_blank_values=True):
        try:
            given[name] = meanings[name](value)
        except (KeyError, ValueError):
            refused.append((name, value))
    kept = dict(defaults or {})
    if given.keys() & set(_POINT):
        kept = {name: value for name, value in kept.items() if name not in DEPLOYMENT}
    return _buildable(kept, given, refused)


def _buildable(
    defaults: dict[str, Any], given: dict[str, Any], refused: list[tuple[str, str]]
) -> Link:
    """Leave out a workload or a layout, or both, that the model or the device does not allow."""
    for left_out in ((), WORKLOAD, DEPLOYMENT, (*WORKLOAD, *DEPLOYMENT), tuple(given)):
        kept = {name: value for name, value in given.items() if name not in left_out}
        if _can_be_built(defaults | kept):
            break
    unused = [(name, str(value)) for name, value in given.items() if name not in kept]
    return Link(defaults | kept, (*refused, *unused))


def _can_be_built(state: Mapping[str, Any]) -> bool:
    if not {"model", "hardware"} <= state.keys():
        return True
    layout = {name: state[name] for name in DEPLOYMENT if name in state}
    usual = DeploymentPanel.class_traits()
    work = {name: state.get(name, usual[name].default_value) for name in WORKLOAD}
    try:
        ledger(state["model"], state["hardware"], Deployment(**layout), Workload(**work))
    except LedgerError:
        return False
    return True


def _meanings() -> dict[str, Callable[[str], Any]]:
    """How the value of each name is read; a value that means nothing raises."""
    weights = {name: name for name in WEIGHT_DTYPES} | {AS_CHECKPOINT: None}
    listed: dict[str, Mapping[str, Any]] = {
        "model": _same(model_slugs()), "hardware": _same(hardware_frame()["slug"]),
        "weights": weights, "experts": weights, "kv_dtype": _same(KV_DTYPES),
        "trail": _same(TRAILS), "language": _same(LANGUAGES), "theme": _same(THEMES),
    }  # fmt: skip
    numbers = [name for name in (*DEPLOYMENT, *WORKLOAD) if name not in listed]
    return {name: of.__getitem__ for name, of in listed.items()} | dict.fromkeys(numbers, _number)


def _same(names: Any) -> dict[str, str]:
    return {name: name for name in names}


def _number(value: str) -> int:
    number = int(value)
    if not 1 <= number <= _MOST:
        raise ValueError(value)
    return number
