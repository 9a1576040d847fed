"""Which further cell would settle an open verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ledgerkit.loadtest._schema import cell_name
from ledgerkit.loadtest._student import t_quantile

if TYPE_CHECKING:
    from ledgerkit.loadtest._fit import Fit

__all__ = ["NextCell", "next_cells", "starting_cells"]

CONTEXTS = (1024, 8192, 32768, 131072)
CONCURRENCIES = (1, 4, 8, 16)
MIN_RUNS = 3
_MARGIN = 1.5


@dataclass(frozen=True)
class NextCell:
    """A cell to measure, and what it is expected to do.

    Attributes
    ----------
    prompt_tokens, concurrency, runs : int
        What to measure, how often.
    expected_width : float or None
        Width of the 95 % interval of the KV share afterwards; None where nothing was fitted yet.
    settles : bool
        Whether that would be enough, if the share stays where it is.
    """

    prompt_tokens: int
    concurrency: int
    runs: int
    expected_width: float | None = None
    settles: bool = False

    @property
    def cell(self) -> str:
        """Name of the cell."""
        return cell_name(self.prompt_tokens, self.concurrency)


@dataclass(frozen=True)
class Room:
    """What a server takes, as far as it is known, and what was measured on it.

    Attributes
    ----------
    tokens, sequences : int or None
        Most tokens of a sequence, most sequences at once.
    measured : tuple of int
        Prompts that it took.

    Examples
    --------
    >>> Room(tokens=2304, sequences=4, measured=(512, 2048)).contexts()
    (512, 1024, 2048)
    >>> Room(tokens=2304, sequences=4).concurrencies()
    (1, 4)
    """

    tokens: int | None = None
    sequences: int | None = None
    measured: tuple[int, ...] = ()

    def contexts(self) -> tuple[int, ...]:
        """Prompts that may be asked for: the usual ones, and those that were measured."""
        usual = {c for c in CONTEXTS if self.tokens is None or c < self.tokens}
        return tuple(sorted(usual | set(self.measured))) or (max((self.tokens or 2) // 2, 1),)

    def concurrencies(self) -> tuple[int, ...]:
        """Sequences at once that may be asked for."""
        most = CONCURRENCIES[-1] if self.sequences is None else self.sequences
        return tuple(sorted({b for b in CONCURRENCIES if b <= most} | {min(most, 16)}))


FREE = Room()


def starting_cells(
    contexts: set[float], concurrencies: set[float], runs: int, room: Room
) -> tuple[NextCell, ...]:
    """Cells that are missing before anything can be fitted: two contexts × two concurrencies."""
    possible, seats = room.contexts(), room.concurrencies()
    wide = sorted(contexts) if len(contexts) >= 2 else [possible[0], possible[-1]]
    many = sorted(concurrencies) if len(concurrencies) >= 2 else [seats[0], seats[-1]]
    corners = [(int(c), int(b)) for c in (wide[0], wide[-1]) for b in (many[0], many[-1])]
    more = max(MIN_RUNS - runs, 0)
    enough = len(contexts) >= 2 and len(concurrencies) >= 2
    return tuple(NextCell(c, b, more if enough else MIN_RUNS) for c, b in dict.fromkeys(corners))


def next_cells(
    fit: Fit,
    at: tuple[float, float],
    thresholds: tuple[float, ...],
    *,
    runs: int = MIN_RUNS,
    room: Room = FREE,
    count: int = 2,
) -> tuple[NextCell, ...]:
    """Cells that would narrow the KV share at the operating point: the smallest one that is enough.

    Where none is enough, the ones that narrow most come first. Adding ``n`` rows with relative
    design ``r`` changes the covariance to ``σ² (AᵀA + n·r rᵀ)⁻¹`` (the fit's own σ is kept).

    Parameters
    ----------
    fit : Fit
        What is known so far.
    at : (context, concurrency)
        Operating point.
    thresholds : tuple of float
        Limits that the interval must not contain.
    runs : int
        Runs of the further cell.
    room : Room
        What the server takes.
    count : int
        How many to name.
    """
    relative = fit.relative
    fitted = np.maximum(fit.design @ relative.free, 1e-300)
    a = fit.design / fitted[:, None]
    scale = np.abs(a).max(axis=0)
    information = (a / scale).T @ (a / scale)
    row = fit.basis.columns(np.array([at[0]]), np.array([at[1]]))[0]
    picked = np.array([0.0, 0.0, 1.0])
    total = float(row @ relative.free)
    share = float(row[2] * relative.free[2] / total)
    slope = (picked - share) * row / total / scale
    quantile = t_quantile(relative.level, relative.dof + runs)
    found = []
    for context in room.contexts():
        for concurrency in room.concurrencies():
            new = fit.basis.columns(np.array([float(context)]), np.array([float(concurrency)]))[0]
            time = float(new @ relative.free)
            if time <= 0:
                continue
            more = new / time / scale
            covariance = relative.sigma**2 * np.linalg.inv(
                information + runs * np.outer(more, more)
            )
            half = quantile * math.sqrt(max(float(slope @ covariance @ slope), 0.0))
            low, high = np.clip([share - half, share + half], 0.0, 1.0).tolist()
            safe = _MARGIN * half  # the share will move when new rows come in
            clear = 2 * safe <= 0.3 and all(abs(share - edge) >= safe for edge in thresholds)
            found.append(NextCell(context, concurrency, runs, high - low, clear))
    found.sort(
        key=lambda cell: (
            (0, float(cell.prompt_tokens * cell.concurrency))
            if cell.settles
            else (1, cell.expected_width or 0.0)
        )
    )
    return tuple(found[:count])
