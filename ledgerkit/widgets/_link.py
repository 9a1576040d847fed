"""The state of an Explorer as the query of an address, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from ledgerkit._ledger import check_workload, ledger
from ledgerkit.catalog.hardware import hardware as hardware_frame
from ledgerkit.catalog.models import load_model, model_slugs
from ledgerkit.errors import LedgerError
from ledgerkit.spec.cache import KV_DTYPES
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.precision import check_weight_format
from ledgerkit.text import get
from ledgerkit.widgets._base import LANGUAGES, THEMES
from ledgerkit.widgets._deployment import (
    AS_CHECKPOINT,
    DEPLOYMENT,
    TRAILS,
    WORKLOAD,
    fitting_workload,
)

_READABLE: Final = 40
"""Characters of a name or a value in a notice."""
_TOLD: Final = 6
"""Problems of one link in a notice."""
_DIGITS: Final = 16
"""Of the largest number that a deployment or a workload takes."""
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
        told = [
            get("widget.link.refused", language, name=_cut(name), value=_cut(value))
            for name, value in self.refused[:_TOLD]
        ]
        return [*told, "…"] if len(self.refused) > _TOLD else told


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
        except (KeyError, ValueError, LedgerError):
            refused.append((name, value))
    kept = dict(defaults or {})
    if given.keys() & set(_POINT):
        kept = {name: value for name, value in kept.items() if name not in DEPLOYMENT}
    return _buildable(kept, given, refused)


def _buildable(
    defaults: dict[str, Any], given: dict[str, Any], refused: list[tuple[str, str]]
) -> Link:
    """Leave out what the model does not take, and nothing else; tokens not named fit the model."""
    if not {"model", "hardware"} <= (defaults | given).keys():
        return Link(defaults | given, tuple(refused))
    model = load_model((defaults | given)["model"])

    def workload(state: Mapping[str, Any]) -> Workload:
        stated = {name: state[name] for name in WORKLOAD if name in state}
        return Workload(**fitting_workload(model.max_position_embeddings, stated) | stated)

    def fits(state: Mapping[str, Any]) -> bool:
        return _works(lambda: check_workload(model, Deployment(), workload(state)))

    def builds(state: Mapping[str, Any]) -> bool:
        layout = {name: state[name] for name in DEPLOYMENT if name in state}
        return _works(
            lambda: ledger(model, state["hardware"], Deployment(**layout), workload(state))
        )

    rest = {name: value for name, value in defaults.items() if name not in WORKLOAD}
    kept = _most(given, WORKLOAD, lambda kept: fits(rest | kept))
    if given and not fits(defaults | kept):
        defaults = rest  # its workload is one for another model
    kept = _most(kept, DEPLOYMENT, lambda kept: builds(defaults | kept))
    unused = [(name, str(value)) for name, value in given.items() if name not in kept]
    return Link(defaults | kept, (*refused, *unused))


def _most(
    given: dict[str, Any], names: Sequence[str], works: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Leave out as few of the names as let it work, the last ones first; none where none helps."""
    found = [name for name in reversed(names) if name in given]
    for count in range(len(found) + 1):
        for out in combinations(found, count):
            kept = {name: value for name, value in given.items() if name not in out}
            if works(kept):
                return kept
    return given


def _works(build: Callable[[], object]) -> bool:
    try:
        build()
    except LedgerError:
        return False
    return True


def _meanings() -> dict[str, Callable[[str], Any]]:
    """How the value of each name is read; a value that means nothing raises."""
    listed: dict[str, Mapping[str, Any]] = {
        "model": _same(model_slugs()), "hardware": _same(hardware_frame()["slug"]),
        "kv_dtype": _same(KV_DTYPES), "trail": _same(TRAILS), "language": _same(LANGUAGES),
        "theme": _same(THEMES),
    }  # fmt: skip
    formats = {name: partial(_format, name) for name in ("weights", "experts")}
    numbers = {*DEPLOYMENT, *WORKLOAD} - {*listed, *formats}
    return {
        **{name: of.__getitem__ for name, of in listed.items()},
        **formats,
        **dict.fromkeys(numbers, _number),
    }


def _same(names: Any) -> dict[str, str]:
    return {name: name for name in names}


def _format(field: str, value: str) -> str | None:
    if value == AS_CHECKPOINT:
        return None
    check_weight_format(field, value)
    return value


def _number(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= _DIGITS and int(value)):
        raise ValueError(value)
    return int(value)


def _cut(words: str) -> str:
    return words if len(words) <= _READABLE else f"{words[:_READABLE]}…"
