"""The double entry of a technique: the difference of two ledgers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ledgerkit._techniques.books import Sums, frame, sums
from ledgerkit._techniques.break_even import BreakEven, find
from ledgerkit._techniques.curve import curve
from ledgerkit._techniques.sides import Side, State
from ledgerkit._techniques.steps import Step, moved_point, run
from ledgerkit._techniques.summary import summary
from ledgerkit._techniques.waterfall import waterfall
from ledgerkit.errors import LedgerError, TechniqueError
from ledgerkit.spec.axes import (
    UNITS,
    Phase,
    Resource,
)

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from ledgerkit._ledger import Explanation

__all__ = ["Step", "Transfer"]

NET_UNITS = {
    "ttft_s": "s",
    "tpot_s": "s",
    "e2e_s": "s",
    "tokens_per_s": "1/s",
    "tokens_per_s_device": "1/s",
    "resident_bytes_device": "B",
    "max_concurrency": "1",
    "usd_per_million_tokens": "USD",
}
"""Names and units of ``Transfer.net``."""
_MORE_IS_BETTER = ("tokens_per_s", "tokens_per_s_device", "max_concurrency")


class Transfer:
    """What a technique saves and where it books the cost, as the difference of two ledgers.

    Made by ``lk.transfer``. A negative change is a credit (saved), a positive one a debit (paid).
    Decode amounts are per output token of every sequence that decodes.
    """

    def __init__(self, steps: tuple[Step, ...], start: State, *, backwards: bool = False) -> None:
        self.steps = steps
        self.start = start
        self.backwards = backwards
        """True: the ledger after the steps is the one before."""
        first, last = Side(start), Side(run(steps, start))
        self.before: Side = last if backwards else first
        self.after: Side = first if backwards else last
        # several break-evens look at the same points
        self._there: dict[tuple[str, float, Phase], Transfer] = {}

    @property
    def technique(self) -> str:
        """Names of the techniques, in order."""
        return " + ".join(step.technique for step in self.steps)

    def __repr__(self) -> str:
        old, new = self.before.net["tpot_s"], self.after.net["tpot_s"]
        return (
            f"Transfer({self.technique!r}: {self.before.point.model.slug} -> "
            f"{self.after.point.model.slug}, tpot {old * 1e3:.2f} -> {new * 1e3:.2f} ms)"
        )

    def __neg__(self) -> Transfer:
        """The same two ledgers, the other way round."""
        return Transfer(self.steps, self.start, backwards=not self.backwards)

    reversed = __neg__

    # books -----------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> Sums:
        return sums(self.before, self.after)

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per phase, resource, ledger and account.

        Columns: phase, resource, unit, verb (null for the time of attention and FFN, which follows
        from the other resources), ledger, account, before, after, change (of the busiest device),
        share_of_before (change over the total before, of that phase and resource), side
        (``credit``, ``debit``, ``none``), before_replica, after_replica, change_replica (of all
        devices; null for time and steps).
        """
        return frame(self._sums)

    @property
    def credits(self) -> pl.DataFrame:
        """Rows that the technique saves."""
        return self.table.filter(side="credit")

    @property
    def debits(self) -> pl.DataFrame:
        """Rows that the technique pays."""
        return self.table.filter(side="debit")

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes, on the busiest device or on all of them."""
        return all(old == new and all_old == all_new
                   for old, new, all_old, all_new in self._sums.values())  # fmt: skip

    @property
    def books_a_cost(self) -> bool:
        """Whether any amount rises, of one device or of all; if none does, check the model.

        Time of attention and FFN is left out: it follows from the other amounts.
        """
        for (_, resource, ledger, _), (old, new, old_all, new_all) in self._sums.items():
            grows = new > old or (new_all or 0.0) > (old_all or 0.0)
            if grows and (resource != "time" or ledger == "scheduling"):
                return True
        return False

    def total(self, phase: Phase = "decode", resource: Resource = "time") -> tuple[float, float]:
        """Amount before and after, on the busiest device."""
        return self.before.total(phase, resource), self.after.total(phase, resource)

    @cached_property
    def net(self) -> pl.DataFrame:
        """What a user notices.

        Columns: name (ttft_s, tpot_s, e2e_s, tokens_per_s of a replica and of a device,
        resident_bytes_device, max_concurrency, usd_per_million_tokens where the device has a
        price), unit, before, after, change, better (null where nothing changes).
        """
        import polars as pl

        rows = []
        for name, unit in NET_UNITS.items():
            if name not in self.before.net or name not in self.after.net:
                continue
            old, new = self.before.net[name], self.after.net[name]
            better = None if old == new else (new > old) == (name in _MORE_IS_BETTER)
            rows.append({"name": name, "unit": unit, "before": old, "after": new,
                         "change": new - old, "better": better})  # fmt: skip
        return pl.DataFrame(rows, schema_overrides={"better": pl.Boolean})

    @property
    def fits(self) -> tuple[str, str]:
        """Whether the deployment fits before and after: ``yes``, ``no`` or ``uncertain``."""
        return self.before.ledger.fits, self.after.ledger.fits

    @property
    def notes(self) -> tuple[str, ...]:
        """What the counterfactuals assume."""
        known = self.start.point.model.notes
        found: dict[str, None] = {}
        for side in (self.before, self.after):
            found |= dict.fromkeys(n for n in side.point.model.notes if n not in known)
            for overlay in side.state.overlays:
                found |= dict.fromkeys(overlay.notes)
        return tuple(found)

    def explain(
        self, account: str, *, phase: Phase = "decode", resource: Resource = "time"
    ) -> dict[str, tuple[Explanation, ...]]:
        """Explain the amounts of an account on both sides.

        What a scheduling technique books on top of a ledger is explained by ``lk.scheduling``.

        Parameters
        ----------
        account : str
        phase, resource : str

        Returns
        -------
        dict
            ``before`` and ``after``: expression, values and source of each entry; empty where a
            side pays nothing.

        Raises
        ------
        TechniqueError
            Neither ledger books anything there.

        Examples
        --------
        >>> import ledgerkit as lk
        >>> work = lk.Workload(prompt_tokens=8192, output_tokens=1)
        >>> found = lk.transfer(
        ...     "mqa", model="llama-3.1-8b", hardware="h100-sxm-80gb", workload=work
        ... )
        >>> both = found.explain("cache", resource="read")
        >>> [round(both[side][0].evaluate() / 1e6) for side in ("before", "after")]
        [1074, 134]
        """
        found: dict[str, tuple[Explanation, ...]] = {}
        for name, side in (("before", self.before), ("after", self.after)):
            try:
                found[name] = side.ledger.explain(account, phase=phase, resource=resource)
            except LedgerError:  # this side pays nothing there
                found[name] = ()
        if not any(found.values()):
            raise TechniqueError(
                f"no ledger books {resource} of {phase} to {account}", given=account,
                fix="look at .table for what is booked where",
            )  # fmt: skip
        return found

    # what if ---------------------------------------------------------------------------------

    def moved(self, axis: str, value: float, phase: Phase = "decode") -> Transfer:
        """Return the same transfer with one thing changed.

        Parameters
        ----------
        axis : str
            See ``break_even``.
        value : float
            Where to.
        phase : {"prefill", "decode", "hold"}
            Which tokens ``context`` means.
        """
        key = (axis, value, phase)
        if key not in self._there:
            self._there[key] = self._moved(axis, value, phase)
        return self._there[key]

    def _moved(self, axis: str, value: float, phase: Phase) -> Transfer:
        for n, step in enumerate(self.steps):
            if axis in step.settings:
                exact = int(value) if isinstance(step.settings[axis], int) else value
                changed = replace(step, settings={**step.settings, axis: exact})
                steps = (*self.steps[:n], changed, *self.steps[n + 1 :])
                return Transfer(steps, self.start, backwards=self.backwards)
        point = moved_point(self.start.point, axis, value, phase)
        return Transfer(self.steps, self.start.moved(point), backwards=self.backwards)

    def break_even(
        self,
        axis: str,
        resource: Resource = "time",
        accounts: Iterable[str] | None = None,
        *,
        phase: Phase | None = None,
        at: Mapping[str, float] | None = None,
        between: tuple[float, float] | None = None,
        weights: bool | None = None,
    ) -> BreakEven:
        """Where a technique turns from gain to loss, or the other way, along one axis.

        Parameters
        ----------
        axis : str
            ``context`` (of the phase), ``query_tokens`` (new tokens after the cached ones),
            ``concurrency``, ``output_tokens``, ``cached_tokens``, ``link_bytes_per_s``, or a number
            among the settings of the technique, such as ``acceptance``.
        resource : str
            ``compute``, ``read``, ``write``, ``resident``, ``communicate``, ``steps``, ``time``.
        accounts : iterable of str, optional
            Count these accounts only, and of them what follows from tokens, not from weights:
            ``("core", "cache", "indexer")``. Default: everything.
        phase : {"prefill", "decode", "hold"}, optional
            Default: hold for ``resident``, otherwise decode.
        at : dict, optional
            Other axes, moved before: ``{"concurrency": 1, "output_tokens": 1}``.
        between : (low, high), optional
            Where to look; default: all that the model and the technique allow.
        weights : bool, optional
            Whether weights count; default: only without ``accounts``.

        Returns
        -------
        BreakEven

        Raises
        ------
        TechniqueError
            The axis is unknown, or nothing can be evaluated along it.

        Examples
        --------
        >>> import ledgerkit as lk
        >>> work = lk.Workload(prompt_tokens=8192, output_tokens=1)
        >>> sparse = lk.transfer(
        ...     "dsa",
        ...     model="deepseek-v3.2",
        ...     hardware="h200-sxm-141gb",
        ...     deployment=lk.Deployment(kv_dtype="fp8_ds_mla"),
        ...     workload=work,
        ...     action="remove",
        ... ).reversed()
        >>> sparse.break_even("context", "compute", ("core", "cache", "indexer")).first
        2178
        """
        if resource not in UNITS:
            raise TechniqueError("unknown resource", given=resource, allowed=", ".join(UNITS),
                                 fix="use resource='time'")  # fmt: skip
        chosen: Phase = phase or ("hold" if resource == "resident" else "decode")
        start = self
        for name, value in (at or {}).items():
            start = start.moved(name, value, chosen)
        return find(
            start, axis, resource, chosen, None if accounts is None else frozenset(accounts),
            between, weights=accounts is None if weights is None else weights,
        )  # fmt: skip

    def curve(
        self,
        axis: str,
        resource: Resource = "time",
        accounts: Iterable[str] | None = None,
        *,
        phase: Phase | None = None,
        between: tuple[float, float] | None = None,
    ) -> pl.DataFrame:
        """Both sides along an axis, for the break-even chart.

        Parameters
        ----------
        axis, resource, accounts, phase, between
            As in ``break_even``.

        Returns
        -------
        polars.DataFrame
            Columns: value (along the axis), before, after, crossing (null where there is none) and
            what the figure says around them. Where nothing is paid before (a prefix kept for its
            next use), ``sides`` is ``saved_paid``: before is what is saved, after what is paid.
        """
        chosen: Phase = phase or ("hold" if resource == "resident" else "decode")
        names = None if accounts is None else tuple(accounts)
        turn = self.break_even(axis, resource, names, phase=chosen, between=between)
        return curve(self, turn)

    def waterfall(self, resource: Resource = "time", phase: Phase | None = None) -> pl.DataFrame:
        """Split a stack into what each technique does alone and what they do to each other.

        Parameters
        ----------
        resource : str
        phase : {"prefill", "decode", "hold"}, optional
            Default: hold for ``resident``, otherwise decode.

        Returns
        -------
        polars.DataFrame
            Columns: technique, kind (``start``, ``technique``, ``interaction``, ``end``), label_zh,
            label_en, alone (change on the deployment before; null for a technique that needs an
            earlier one), in_order (change where it stands in the stack), after (level behind it),
            phase, resource, unit. The bars alone (in order where alone is null) and the
            interaction sum to the whole.

        Raises
        ------
        TechniqueError
            The transfer is reversed, or the resource unknown.
        """
        chosen: Phase = phase or ("hold" if resource == "resident" else "decode")
        return waterfall(self, chosen, resource)

    def summary(self) -> pl.DataFrame:
        """Names, operating point, net effect, break-evens and stated risks, in one row."""
        return summary(self)

    def chart(self, kind: str = "bars", **options: Any) -> alt.TopLevelMixin:
        """Draw the transfer.

        Parameters
        ----------
        kind : {"bars", "waterfall", "break_even", "triangle"}
            Credits and debits, the bars of a stack, both sides along an axis, or the arrow that
            the technique makes in the ledger triangle.
        **options
            As in ``lk.charts.transfer_bars``, ``stack_waterfall``, ``break_even_curves`` and
            ``ledger_triangle``.
        """
        from ledgerkit import _plot  # the one allowed upward call

        area = {"bars": "transfer", "triangle": "transfer"}.get(kind, kind)
        return _plot.draw(area, kind, self, **options)  # type: ignore[no-any-return]
