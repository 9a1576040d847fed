"""From results to charts: the one place below the charts that may call them.

``.chart()`` methods come here. Charts load on first use, by module path, so that results import
without Altair.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import FigureError

if TYPE_CHECKING:
    from ledgerkit._compare import Comparison
    from ledgerkit._ledger import Ledger

__all__ = ["comparison_chart", "draw", "ledger_chart"]

KINDS = ("triangle", "bars", "memory", "explorer")


def _called(
    function: Callable[..., Any], subjects: tuple[Any, ...], options: dict[str, Any], **own: Any
) -> Any:
    """Call a chart function with what is ours; refuse options that it does not have."""
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.name not in own][len(subjects) :]
    unknown = sorted(set(options) - set(known))
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise FigureError(
            f"this chart has no option {unknown[0]!r}", given=options[unknown[0]],
            allowed=", ".join(known), fix=f"leave {unknown[0]} out",
        )  # fmt: skip
    return function(*subjects, **own, **options)


def _function(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(importlib.import_module("ledgerkit.charts"), name)
    return found


def comparison_chart(comparison: Comparison, *, kind: str = "triangle", **options: Any) -> Any:
    """Draw a comparison.

    Parameters
    ----------
    comparison : Comparison
        What to draw.
    kind : {"triangle", "bars", "memory", "explorer"}
        Which chart.
    **options : object
        Those of the chart function: language, theme, preset, ...

    Returns
    -------
    altair.LayerChart

    Raises
    ------
    FigureError
        For an unknown kind or option.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> work = lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=8)
    >>> both = lk.compare(
    ...     [
    ...         {"model": slug, "hardware": "h100-sxm-80gb", "workload": work}
    ...         for slug in ("llama-3.1-8b", "qwen3-8b")
    ...     ]
    ... )
    >>> comparison_chart(both, kind="bars").to_dict()["width"]
    700
    """
    table = comparison.table
    if kind == "triangle":
        return _called(_function("ledger_triangle"), (table,), options)
    if kind == "bars":
        return _called(_function("ledger_bars"), (comparison.entries,), options, table=table)
    if kind == "memory":
        return _called(_function("memory_bars"), (comparison.memory,), options, table=table)
    if kind == "explorer":
        subjects = (table, comparison.entries, comparison.memory)
        return _called(_function("explorer_panel"), subjects, options)
    raise FigureError("unknown kind of chart", given=kind, allowed=", ".join(KINDS),
                      fix="use kind='triangle'")  # fmt: skip


def ledger_chart(ledger: Ledger, *, kind: str = "bars", **options: Any) -> Any:
    """Draw one ledger.

    Parameters
    ----------
    ledger : Ledger
        What to draw.
    kind : {"triangle", "bars", "memory", "explorer"}
        Which chart.
    **options : object
        Those of the chart function: language, theme, preset, ...

    Returns
    -------
    altair.LayerChart

    Raises
    ------
    FigureError
        For an unknown kind or option.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> work = lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=8)
    >>> books = lk.ledger("llama-3.1-8b", "h100-sxm-80gb", workload=work)
    >>> ledger_chart(books, language="zh").to_dict()["usermeta"]["ledgerkit"]["title"]
    '同一套部署，三种账单'
    """
    from ledgerkit._compare import compare

    return comparison_chart(compare([ledger]), kind=kind, **options)


def draw(area: str, kind: str, subject: Any, **options: Any) -> Any:
    """Draw a result of an area that has its own chart module.

    Parameters
    ----------
    area : str
        Module below ``ledgerkit.charts``.
    kind : str
        Function ``draw_<kind>`` of that module.
    subject : object
        The result.
    **options : object
        Those of the function.

    Returns
    -------
    altair.Chart

    Raises
    ------
    FigureError
        If the area has no such chart.
    """
    module = importlib.import_module(f"ledgerkit.charts.{area}")
    function = getattr(module, f"draw_{kind}", None)
    if function is None:
        kinds = [name[5:] for name in dir(module) if name.startswith("draw_")]
        raise FigureError("unknown kind of chart", given=kind, allowed=", ".join(kinds),
                          fix="use one of these kinds")  # fmt: skip
    return _called(function, (subject,), options)
