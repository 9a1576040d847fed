"""``SweepView``: many deployments at once, in the background, with a box to pick points."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, cast

import ipywidgets as w
import polars as pl
import traitlets as t

from ledgerkit._sweep import geomspace, sweep
from ledgerkit._sweep.columns import COLUMNS
from ledgerkit._sweep.progress import describe
from ledgerkit._sweep.run import Progress
from ledgerkit.errors import LedgerError, SweepCancelledError
from ledgerkit.widgets._background import Background
from ledgerkit.widgets._base import heading
from ledgerkit.widgets._code import call
from ledgerkit.widgets._sweep_controls import COLORS, K, sweep_controls
from ledgerkit.widgets._tables import points_table

if TYPE_CHECKING:
    from ledgerkit._sweep import Sweep

LISTED = 12
"""Rows of the picked points that are shown."""
_TRAITS = ("models", "devices", "tp", "kv_dtype", "prompt_tokens", "concurrency", "steps",
           "output_tokens", "fits_only")  # fmt: skip


class SweepView(Background):
    """Sweep models, devices, layouts and workloads; draw any two columns; pick points with a box.

    The sweep runs in a thread, with progress and a cancel button.

    Parameters
    ----------
    models, devices : sequence of str
        Slugs.
    tp : sequence of int
        Tensor-parallel widths.
    kv_dtype : sequence of str
        Cache layouts.
    prompt_tokens, concurrency : (int, int)
        First and last value; ``steps`` values between them, in equal ratios.
    steps : int
        2 to 200.
    output_tokens : int
        Of every point.
    x, y : str
        Columns of the figure.
    color : {"model", "hardware", "tp", "kv_dtype"}
        What the colours tell apart, at most six.
    fits_only : bool
        Whether to leave out what does not fit.
    language : {"zh", "en"}, optional
    theme : {"article", "dark"}
    run : bool
        Whether to start at once.

    Attributes
    ----------
    frame : polars.DataFrame or None
        All points of the last run.
    selection : polars.DataFrame or None
        The points in the box; without a box, all.
    state : str
        ``"idle"``, ``"running"``, ``"cancelled"`` or ``"done"``.

    Examples
    --------
    >>> view = SweepView(["llama-3.1-8b"], ["h100-sxm-80gb"], steps=3, run=False)
    >>> view.points
    36
    >>> view.close()
    """

    models = t.List(t.Unicode(), help="slugs of models")
    devices = t.List(t.Unicode(), help="slugs of devices")
    tp = t.List(t.Int(min=1), help="tensor-parallel widths")
    kv_dtype = t.List(t.Unicode(), help="cache layouts")
    prompt_tokens = t.Tuple(t.Int(min=1), t.Int(min=1), help="first and last context")
    concurrency = t.Tuple(t.Int(min=1), t.Int(min=1), help="first and last concurrency")
    steps = t.Int(16, min=2, max=200, help="values of context and of concurrency")
    output_tokens = t.Int(512, min=1, help="tokens of an answer")
    fits_only = t.Bool(default_value=True, help="leave out what does not fit")
    x = t.Unicode("tokens_per_s_per_user", help="column along x")
    y = t.Unicode("tokens_per_s_per_device", help="column along y")
    color = t.Enum(COLORS, default_value="model", help="what colours tell apart")

    CANCELLED: ClassVar = SweepCancelledError

    def __init__(
        self,
        models: Sequence[str] = ("deepseek-v3", "gemma-4-26b-a4b", "kimi-k2.6"),
        devices: Sequence[str] = ("h100-sxm-80gb", "h200-sxm-141gb"),
        *,
        language: str | None = None,
        theme: str = "article",
        run: bool = True,
        **state: Any,
    ) -> None:
        super().__init__("sweep", language=language, theme=theme, brush="brush")
        self.frame: pl.DataFrame | None = None
        self._picked = w.HTML()
        self._built = False
        defaults: dict[str, Any] = {
            "tp": [1, 2, 4, 8], "kv_dtype": ["bf16"], "prompt_tokens": (K, 128 * K),
            "concurrency": (1, 1024),
        }  # fmt: skip
        given = {**defaults, **state, "models": list(models), "devices": list(devices)}
        try:
            _check_options(given, (*_TRAITS, "x", "y", "color"))
            for name, value in given.items():
                self.set_trait(name, list(value) if name in ("tp", "kv_dtype") else value)
            for name in ("x", "y"):
                _check_column(getattr(self, name))
            self._sweep()
        except Exception:
            self.close()
            raise
        self._build()
        self._built = True
        self._figure.observe(self._brushed, names="selected")
        if run:
            self.start()

    # the run ------------------------------------------------------------------------------------

    @property
    def points(self) -> int:
        """Points that a run computes."""
        return self._sweep().points

    @property
    def selection(self) -> pl.DataFrame | None:
        """Points in the box that is drawn over the figure; without one, all."""
        if self.frame is None:
            return None
        limits = self._figure.selected
        kept = [
            pl.col(name).is_between(min(ends), max(ends))
            for name, ends in limits.items()
            if name in self.frame.columns and ends
        ]
        return self.frame.filter(*kept) if kept else self.frame

    def _axes(self) -> dict[str, Any]:
        return {
            "model": self.models, "hardware": self.devices, "tp": self.tp,
            "kv_dtype": self.kv_dtype, "output_tokens": self.output_tokens,
        }  # fmt: skip

    def _sweep(self, tell: Callable[[Progress], object] | None = None) -> Sweep:
        spans: dict[str, Any] = {}
        for name in ("prompt_tokens", "concurrency"):
            low, high = getattr(self, name)
            spans[name] = geomspace(low, high, self.steps)
        made = sweep(**self._axes(), **spans, progress=tell or False)
        return made.where(pl.col("fits") != "no") if self.fits_only else made

    def _collect(self, made: Sweep) -> pl.DataFrame:
        return made.collect()

    def _task(self, tell: Callable[[Any], bool]) -> Callable[[], pl.DataFrame]:
        made = self._sweep(tell)
        columns = dict.fromkeys((*made.columns, self.x, self.y))
        return lambda: self._collect(made.select(*columns))

    def _finish(self, result: Any) -> None:
        self.frame = result

    def _progress(self, progress: Progress) -> tuple[float, str]:
        return progress.fraction, describe(progress, self.language)

    def _words(self) -> str:
        if self.state == "done" and self.frame is not None:
            return self.text("widget.sweep.done", points=f"{self.frame.height:,}",
                             seconds=f"{self._seconds:.1f}")  # fmt: skip
        return self.text("widget.sweep.points", points=f"{self.points:,}")

    # view ---------------------------------------------------------------------------------------

    def _build(self) -> None:
        text = self.text
        made = sweep_controls(self)
        for name, control in made.items():
            many = isinstance(control, w.SelectMultiple)
            control.observe(self._listed(name) if many else self._hand(name), names="value")
        self._controls = made
        titled: list[w.Widget] = []
        for name in ("models", "devices", "tp", "kv_dtype"):
            titled += [heading(made[name].tooltip), made[name]]
        self._side.children = (
            *titled, heading(text("widget.group.axes")),
            *(made[name] for name in ("prompt_tokens", "concurrency", "steps", "fits_only")),
            heading(text("widget.group.run")), *self._run_controls(),
            heading(text("widget.group.view")), *(made[name] for name in ("x", "y", "color")),
        )  # fmt: skip
        self._detail.children = (self._picked, self._python)
        self._detail.add_class("ledgerkit-wide")

    def _listed(self, name: str) -> Callable[[Any], None]:
        def moved(change: dict[str, Any]) -> None:
            with self._hands_on():
                setattr(self, name, list(change["new"]))

        return moved

    @t.observe(*_TRAITS)
    def _axes_changed(self, change: dict[str, Any]) -> None:
        if not self._built:
            return
        self._follow(change["name"])
        self._outdated()

    @t.observe("x", "y", "color")
    def _columns_changed(self, change: dict[str, Any]) -> None:
        if not self._built:
            return
        self._follow(change["name"])
        if self.frame is not None and {self.x, self.y} <= set(self.frame.columns):
            self._refresh()
        elif self.frame is not None:
            with self._hands_on():
                _check_column(getattr(self, change["name"]))
                self.start()

    def _follow(self, name: str) -> None:
        """Let the control show what the trait says, where it can."""
        control = self._controls.get(name)
        value = getattr(self, name)
        shown = tuple(value) if isinstance(value, list) else value
        if control is not None and control.value != shown:
            with suppress(t.TraitError):  # a value beyond what the control offers
                control.value = shown

    def _draw(self) -> None:
        if self.frame is None:
            self._show(None, "")
            self._say()
            return
        from ledgerkit.charts.sweep import draw_points  # heavy: it loads Altair

        # the frame is there already: the figure is drawn from it, not from a second run
        chart = draw_points(
            cast("Sweep", _Collected(self.frame)), x=self.x, y=self.y, color=self.color,
            language=self.language, theme=self.theme,
        )  # fmt: skip
        self._show(chart, self._python_code())
        self._say()
        self._list()

    def _python_code(self) -> str:
        axes = [f"{name}={_plain(value)}" for name, value in self._axes().items()]
        for name in ("prompt_tokens", "concurrency"):
            low, high = getattr(self, name)
            axes.append(f"{name}=lk.geomspace({low}, {high}, {self.steps})")
        made = call("lk.sweep", axes)
        kept = "points = points.where(pl.col('fits') != 'no')\n" if self.fits_only else ""
        drawn = call("points.chart", [
            f"x={self.x!r}", f"y={self.y!r}", f"color={self.color!r}",
            f"language={self.language!r}", f"theme={self.theme!r}",
        ])  # fmt: skip
        polars = "import polars as pl\n" if self.fits_only else ""
        return f"import ledgerkit as lk\n{polars}\npoints = {made}\n{kept}{drawn}\n"

    # the box ------------------------------------------------------------------------------------

    def _brushed(self, _change: dict[str, Any]) -> None:
        with self._hands_on():
            self._list()

    def _list(self) -> None:
        """List the points in the box."""
        found = self.selection
        if found is None or not self._figure.selected:
            self._picked.value = f"<p>{html.escape(self.text('widget.sweep.brush'))}</p>"
            return
        shown = found.head(LISTED)
        title = self.text("widget.sweep.selected", points=f"{found.height:,}",
                          shown=f"{shown.height:,}")  # fmt: skip
        self._picked.value = f"<h4>{html.escape(title)}</h4>{points_table(shown)}"


class _Collected:
    """A frame that answers what the chart asks of a sweep."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def select(self, *names: str) -> _Collected:
        return _Collected(self._frame.select(names))

    def collect(self) -> pl.DataFrame:
        return self._frame


def _check_options(given: Iterable[str], allowed: Sequence[str]) -> None:
    unknown = sorted(set(given) - set(allowed))
    if unknown:
        raise LedgerError("SweepView has no such option", given=unknown,
                          allowed=", ".join(allowed))  # fmt: skip


def _check_column(name: str) -> None:
    if name not in COLUMNS:
        raise LedgerError("a sweep has no such column", given=name,
                          fix="see lk.sweep(...).outputs()")  # fmt: skip


def _plain(value: Any) -> str:
    """A list of one value is that value."""
    one = value[0] if isinstance(value, list) and len(value) == 1 else value
    return repr(one)
