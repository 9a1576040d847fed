"""From a comparison table to trails: what the triangle and its share table draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ledgerkit.errors import FigureError
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from ledgerkit.text import Language

__all__ = ["AXES", "Stop", "Trail", "Trails", "coinciding", "read_rows", "read_trails"]

AXES: Final = ("prompt_tokens", "concurrency", "output_tokens")
SHARES: Final = ("attention_kv_share", "ffn_mlp_share", "scheduling_share")
COLUMNS: Final = (
    "label",
    "model",
    *AXES,
    "is_operating_point",
    "fits",
    "decode_time_s",
    *SHARES,
    "deployment_text_zh",
    "deployment_text_en",
    "order",
)
"""Columns of a comparison table that the triangle reads."""


@dataclass(frozen=True)
class Stop:
    """One point of a trail.

    Parameters
    ----------
    value : float
        Position along the trail, in tokens or sequences.
    shares : tuple of float
        Shares of decode time by ledger, 0 to 1.
    seconds : float
        Decode time of one step.
    fits : bool
        Whether the deployment holds it in memory.
    operating : bool
        Whether it is the deployment's own operating point.
    """

    value: float
    shares: tuple[float, float, float]
    seconds: float
    fits: bool
    operating: bool


@dataclass(frozen=True)
class Trail:
    """One deployment: its points in the order of the trail.

    Parameters
    ----------
    label, model : str
        Name at the mark, and slug.
    deployment : str
        Machine and precision in words.
    prompt_tokens, concurrency, output_tokens : int
        Workload at the operating point.
    stops : tuple of Stop
        At least one, ascending.
    """

    label: str
    model: str
    deployment: str
    prompt_tokens: int
    concurrency: int
    output_tokens: int
    stops: tuple[Stop, ...]

    @property
    def mark(self) -> Stop:
        """The operating point; the first point where none is marked."""
        return next((stop for stop in self.stops if stop.operating), self.stops[0])


@dataclass(frozen=True)
class Trails:
    """All trails of a figure, and what could not be drawn.

    Parameters
    ----------
    axis : str
        Column that the trails follow.
    trails : tuple of Trail
        In the order of the comparison.
    dropped : int
        Rows left out because a number was not finite.
    empty : tuple of str
        Labels whose decode time is zero: they have no shares.
    arrows : tuple of (str, str)
        Labels that an arrow leads from and to.
    """

    axis: str
    trails: tuple[Trail, ...]
    dropped: int
    empty: tuple[str, ...]
    arrows: tuple[tuple[str, str], ...] = ()

    @property
    def stops(self) -> list[Stop]:
        """All points of all trails."""
        return [stop for trail in self.trails for stop in trail.stops]

    def span(self) -> tuple[float, float]:
        """Smallest and largest position of any trail."""
        values = [stop.value for stop in self.stops]
        return (min(values), max(values)) if values else (0, 0)

    def position(self, value: float) -> str:
        """Write a position along the trail."""
        return numbers.count(value) if self.axis == "concurrency" else numbers.context(value)


def read_rows(frame: pl.DataFrame, columns: Iterable[str], what: str) -> list[dict[str, Any]]:
    """Rows of a frame, after a check that it has the columns.

    Parameters
    ----------
    frame : polars.DataFrame
        Input of a chart.
    columns : iterable of str
        Columns that the chart needs.
    what : str
        Name of the chart, for the message.

    Returns
    -------
    list of dict

    Raises
    ------
    FigureError
        If it is no frame or columns are missing.
    """
    present = getattr(frame, "columns", None)
    if present is None or not hasattr(frame, "iter_rows"):
        raise FigureError(
            f"{what} draws from a polars frame",
            given=type(frame).__name__,
            allowed="polars.DataFrame",
        )
    wanted = list(columns)
    missing = [column for column in wanted if column not in present]
    if missing:
        raise FigureError(
            f"{what} needs columns that the frame does not have",
            given=", ".join(missing),
            allowed=", ".join(wanted),
        )
    return list(frame.iter_rows(named=True))


def finite(*values: Any) -> bool:
    """Whether all values are finite numbers.

    Parameters
    ----------
    *values : object
        Cells of a row.

    Returns
    -------
    bool
    """
    return all(isinstance(value, int | float) and math.isfinite(value) for value in values)


def _axis(rows: Sequence[dict[str, Any]], wanted: str | None) -> str:
    """The trail's column: as asked, else the one that varies within a label."""
    if wanted is not None:
        if wanted not in AXES:
            raise FigureError("unknown trail", given=wanted, allowed=", ".join(AXES))
        return wanted
    for axis in AXES:
        seen: dict[str, set[Any]] = {}
        for row in rows:
            seen.setdefault(row["label"], set()).add(row[axis])
        if any(len(values) > 1 for values in seen.values()):
            return axis
    return AXES[0]


def read_trails(table: pl.DataFrame, axis: str | None, language: Language) -> Trails:
    """Read a comparison table.

    Parameters
    ----------
    table : polars.DataFrame
        ``Comparison.table``, or a frame with its columns.
    axis : str or None
        Column that the trails follow; None finds it.
    language : {"zh", "en"}
        Language of the deployment texts.

    Returns
    -------
    Trails

    Raises
    ------
    FigureError
        If columns are missing or the axis is unknown.
    """
    rows = read_rows(table, COLUMNS, "the ledger triangle")
    axis = _axis(rows, axis)
    kept: dict[str, list[dict[str, Any]]] = {}
    dropped = 0
    empty: list[str] = []
    for row in sorted(rows, key=lambda row: row["order"]):
        if finite(row["decode_time_s"]) and row["decode_time_s"] == 0:
            empty.append(row["label"])
        elif finite(row[axis], row["decode_time_s"], *(row[share] for share in SHARES)):
            kept.setdefault(row["label"], []).append(row)
        else:
            dropped += 1
    trails = tuple(_trail(label, own, axis, language) for label, own in kept.items())
    return Trails(axis, trails, dropped, tuple(dict.fromkeys(empty)))


def _trail(label: str, rows: list[dict[str, Any]], axis: str, language: Language) -> Trail:
    rows = sorted(rows, key=lambda row: row[axis])
    operating = next((row for row in rows if row["is_operating_point"]), rows[0])
    stops = tuple(
        Stop(
            value=row[axis],
            shares=(row[SHARES[0]], row[SHARES[1]], row[SHARES[2]]),
            seconds=row["decode_time_s"],
            fits=row["fits"] != "no",
            operating=row is operating,
        )
        for row in rows
    )
    return Trail(
        label=label,
        model=operating["model"],
        deployment=operating[f"deployment_text_{language}"],
        prompt_tokens=operating["prompt_tokens"],
        concurrency=operating["concurrency"],
        output_tokens=operating["output_tokens"],
        stops=stops,
    )


def coinciding(trails: Sequence[Trail]) -> dict[str, str]:
    """Find trails whose shares are those of an earlier one all along, within 0.3 points.

    Parameters
    ----------
    trails : sequence of Trail
        In drawing order.

    Returns
    -------
    dict
        Label to the label of the earlier trail.
    """
    covered: dict[str, str] = {}
    for index, trail in enumerate(trails):
        for earlier in trails[:index]:
            if len(trail.stops) == len(earlier.stops) and all(
                abs(one - other) < 0.003
                for stop, same in zip(trail.stops, earlier.stops, strict=True)
                for one, other in zip(stop.shares, same.shares, strict=True)
            ):
                covered.setdefault(trail.label, earlier.label)
    return covered
