"""From results to charts: the one place below the charts that may call them.

``.chart()`` methods come here. Charts load on first use, by module path, so that results import
without Altair.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import FigureError

if TYPE_CHECKING:
    from ledgerkit._compare import Comparison
    from ledgerkit._ledger import Ledger

__all__ = ["comparison_chart", "draw", "ledger_chart"]

KINDS = ("triangle", "bars", "memory", "explorer")


def _function(name: str) -> Any:
    return getattr(importlib.import_module("ledgerkit.charts"), name)


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
    if kind == "triangle":
        return _function("ledger_triangle")(comparison.table, **options)
    if kind == "bars":
        return _function("ledger_bars")(comparison.entries, table=comparison.table, **options)
    if kind == "memory":
        return _function("memory_bars")(comparison.memory, table=comparison.table, **options)
    if kind == "explorer":
        return _function("explorer_panel")(
            comparison.table, comparison.entries, comparison.memory, **options
        )
    raise FigureError("unknown kind of chart", given=kind, allowed=", ".join(KINDS))


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
        raise FigureError("unknown kind of chart", given=kind, allowed=", ".join(kinds))
    return function(subject, **options)
