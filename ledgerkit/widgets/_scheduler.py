"""``SchedulerView``: an engine under load, mechanism by mechanism."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as w
import traitlets as t

from ledgerkit._simulate import Arrivals, Simulation, simulate
from ledgerkit.errors import SimulationCancelledError
from ledgerkit.text import numbers
from ledgerkit.widgets._background import Background
from ledgerkit.widgets._base import heading, select
from ledgerkit.widgets._code import call
from ledgerkit.widgets._deployment import DEPLOYMENT, FIELDS, DeploymentPanel
from ledgerkit.widgets._tables import note_list

if TYPE_CHECKING:
    from ledgerkit._simulate.run import Progress

FIGURES = ("timeline", "latency", "books")
RATES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
COUNTS = (100, 200, 400, 1000, 4000)
PREFIXES = (0, 256, 512, 1024, 2048, 4096, 8192)
_CHOICES: dict[str, tuple[str, ...]] = {
    "batching": ("continuous", "static"), "cache_allocation": ("paged", "contiguous"),
    "preemption": ("recompute", "swap", "none"),
    "router": ("least_loaded", "round_robin", "prefix_aware"),
}  # fmt: skip
_NUMBERS: dict[str, tuple[int, ...]] = {"draft_tokens": (0, 1, 2, 3, 4), "replicas": (1, 2, 4, 8)}
_ACCEPTANCE = 0.8
_LOAD = ("rate_per_s", "requests", "prompt_tokens", "output_tokens", "shared_prefix_tokens")
_MECHANISMS = ("prefix_cache", "chunked_prefill", "batching", "cache_allocation", "preemption",
               "draft_tokens", "replicas", "router", "overload")  # fmt: skip


class SchedulerView(Background, DeploymentPanel):
    """Simulates an engine under load, in the background; each change starts another run.

    Parameters
    ----------
    model, hardware : str, Path, dict or Model; str
        What is served, and on what.
    language : {"zh", "en"}, optional
    theme : {"article", "dark"}
    run : bool
        Whether to start at once.
    **state : object
        Fields of ``Deployment``; of the load: ``rate_per_s``, ``requests``, ``prompt_tokens``,
        ``output_tokens``, ``shared_prefix_tokens``; mechanisms: ``prefix_cache``,
        ``chunked_prefill``, ``batching``, ``cache_allocation``, ``preemption``, ``draft_tokens``
        (each accepted with probability 0.8), ``replicas``, ``router``, ``overload``; ``figure``:
        ``"timeline"``, ``"latency"`` or ``"books"``.

    Attributes
    ----------
    simulation : Simulation or None
        The last run that ended.
    state : str
        ``"idle"``, ``"running"``, ``"cancelled"`` or ``"done"``.

    Examples
    --------
    >>> view = SchedulerView("llama-3.1-8b", "h100-sxm-80gb", rate_per_s=4, run=False)
    >>> view.prefix_cache = False
    >>> view.state
    'idle'
    >>> view.close()
    """

    rate_per_s = t.Float(2.0, min=0.0, help="requests per second, on average")
    requests = t.Int(400, min=1, help="how many requests")
    shared_prefix_tokens = t.Int(0, min=0, help="tokens that all prompts begin with")
    prefix_cache = t.Bool(default_value=True, help="reuse the cache of equal beginnings")
    chunked_prefill = t.Bool(default_value=True, help="cut prompts into chunks")
    batching = t.Enum(_CHOICES["batching"], default_value="continuous", help="how batches form")
    cache_allocation = t.Enum(_CHOICES["cache_allocation"], default_value="paged", help="of KV")
    preemption = t.Enum(_CHOICES["preemption"], default_value="recompute", help="when KV is full")
    draft_tokens = t.Int(0, min=0, help="drafted tokens of each step")
    replicas = t.Int(1, min=1, help="replicas behind one router")
    router = t.Enum(_CHOICES["router"], default_value="least_loaded", help="which replica")
    overload = t.Bool(default_value=False, help="run a stream beyond capacity as well")
    figure = t.Enum(FIGURES, default_value="timeline", help="which chart is shown")

    GROUPS: ClassVar = (
        ("load", _LOAD), ("mechanisms", _MECHANISMS), ("view", ("figure",)), ("model", ("model",)),
        ("machine", ("hardware",)), ("deployment", DEPLOYMENT),
    )  # fmt: skip
    CANCELLED: ClassVar = SimulationCancelledError

    def __init__(
        self,
        model: Any = "llama-3.1-8b",
        hardware: str = "h100-sxm-80gb",
        *,
        language: str | None = None,
        theme: str = "article",
        run: bool = True,
        **state: Any,
    ) -> None:
        given = {"prompt_tokens": 1024, "output_tokens": 128, **state}
        super().__init__("scheduler", model, hardware, given, language=language, theme=theme)
        self.simulation: Simulation | None = None
        self._live = run
        self._made_code = ""
        self._latencies, self._sums = w.HTML(), w.HTML()
        self._build()
        if run:
            self.start()

    # the run ------------------------------------------------------------------------------------

    def _scheduler(self) -> dict[str, Any]:
        """Mechanisms that are not as the engine has them."""
        found: dict[str, Any] = {
            name: False for name in ("prefix_cache", "chunked_prefill") if not getattr(self, name)
        }
        for name, (usual, *_) in _CHOICES.items():
            if getattr(self, name) != usual:
                found[name] = getattr(self, name)
        if self.draft_tokens:
            found |= {"draft_tokens": self.draft_tokens, "acceptance": _ACCEPTANCE}
        if self.replicas > 1:
            found["replicas"] = self.replicas
        if self.overload:
            found["overload"] = "run"
        return found

    def _stream(self) -> dict[str, Any]:
        found = {"requests": self.requests, "prompt_tokens": self.prompt_tokens,
                 "output_tokens": self.output_tokens}  # fmt: skip
        if self.shared_prefix_tokens:
            found["shared_prefix_tokens"] = self.shared_prefix_tokens
        return found

    def _task(self, tell: Callable[[Any], bool]) -> Callable[[], tuple[Simulation, str]]:
        model, hardware, deployment = self._model(), self.hardware, self._deployment()
        arrivals = Arrivals.poisson(self.rate_per_s, **self._stream())
        how = self._scheduler()
        stream = [repr(self.rate_per_s)]
        stream += [f"{name}={value!r}" for name, value in self._stream().items()]
        code = (
            "import ledgerkit as lk\n\n"
            f"arrivals = {call('lk.Arrivals.poisson', stream)}\nrun = "
            + call("lk.simulate", [*self._point_code()[:3], "arrivals",
                                   *(f"{name}={value!r}" for name, value in how.items())])
        )  # fmt: skip

        def work() -> tuple[Simulation, str]:
            return simulate(model, hardware, deployment, arrivals, progress=tell, **how), code

        return work

    def _finish(self, result: Any) -> None:
        self.simulation, self._made_code = result

    def _progress(self, progress: Progress) -> tuple[float, str]:
        words = self.text(
            "widget.scheduler.progress", done=f"{progress.requests:,}",
            total=f"{progress.total_requests:,}", steps=f"{progress.iterations:,}",
        )  # fmt: skip
        return progress.requests / max(1, progress.total_requests), words

    def _words(self) -> str:
        if self.state == "done" and self.simulation is not None:
            return self.text(
                "widget.scheduler.done", steps=f"{self.simulation.iterations:,}",
                wall=numbers.duration(self.simulation.wall_s), seconds=f"{self._seconds:.1f}",
            )  # fmt: skip
        return self.text("widget.scheduler.idle")

    # view ---------------------------------------------------------------------------------------

    def _own_controls(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        listed: dict[str, list[tuple[str, Any]]] = {
            name: [(self.text(f"widget.scheduler.choice.{one}"), one) for one in choices]
            for name, choices in _CHOICES.items()
        }
        listed |= {
            "rate_per_s": [(f"{one:g} /s", one) for one in sorted({*RATES, self.rate_per_s})],
            "requests": [(f"{one:,}", one) for one in sorted({*COUNTS, self.requests})],
            "shared_prefix_tokens": [
                (f"{one:,}", one) for one in sorted({*PREFIXES, self.shared_prefix_tokens})
            ],
            "figure": [(self.text(f"widget.scheduler.{one}"), one) for one in FIGURES],
        }
        listed |= {
            name: [(str(one), one) for one in sorted({*offered, getattr(self, name)})]
            for name, offered in _NUMBERS.items()
        }
        for name, options in listed.items():
            label = self.text(f"widget.scheduler.{name}")
            made[name] = select(options, getattr(self, name), label=label)
        for name in ("prefix_cache", "chunked_prefill", "overload"):
            made[name] = w.Checkbox(value=getattr(self, name), indent=False,
                                    description=self.text(f"widget.scheduler.{name}"))  # fmt: skip
        return made

    def _build(self) -> None:
        super()._build()
        run = heading(self.text("widget.group.run"))
        self._side.children = (run, *self._run_controls(), *self._side.children)
        self._detail.children = (self._latencies, self._sums, self._python)

    @t.observe(*_LOAD[:2], *_LOAD[4:], *_MECHANISMS)
    def _setting_changed(self, change: dict[str, Any]) -> None:
        if self._controls:
            self._follow(change["name"])
            self._again()

    @t.observe("figure")
    def _figure_changed(self, _change: dict[str, Any]) -> None:
        if self._controls:
            self._follow("figure")
            self._refresh()

    @t.observe(*FIELDS)
    def _deployment_changed(self, change: dict[str, Any]) -> None:
        if self._controls:
            self._follow(change["name"])
            if change["name"] == "model":
                self._allow_experts()
            self._again()

    def _again(self) -> None:
        """What is shown no longer holds: run again, or wait for the button."""
        if not self._live:
            self._outdated()
            return
        with self._hands_on():
            self.start()

    def start(self) -> None:
        """Start a run in the background; one that is under way is cancelled."""
        super().start()
        self._live = True

    def _draw(self) -> None:
        run = self.simulation
        if run is None:
            self._show(None, "")
            self._say()
            return
        options = f"{self.figure!r}, language={self.language!r}, theme={self.theme!r}"
        chart = run.chart(self.figure, language=self.language, theme=self.theme)
        self._latencies.value = self._latency_table(run)
        self._sums.value = self._summary_table(run)
        self._show(chart, f"{self._made_code}\nrun.chart({options})\n")
        self._say()

    def _latency_table(self, run: Simulation) -> str:
        """Latencies by metric and statistic, as HTML."""
        statistics = ("mean", "p50", "p90", "p99")
        rows: dict[str, dict[str, float]] = {}
        for metric, statistic, value in run.latency.select(
            "metric", "statistic", "value"
        ).iter_rows():
            rows.setdefault(metric, {})[statistic] = value
        head = "".join(
            f"<th scope='col'>{self.text('widget.scheduler.mean') if name == 'mean' else name}</th>"
            for name in statistics
        )
        body = "".join(
            f"<tr data-key='{metric}'><th scope='row'>"
            f"{html.escape(self.text(f'widget.scheduler.metric.{metric}'))}</th>"
            + "".join(f"<td>{_written(row.get(name))}</td>" for name in statistics)
            + "</tr>"
            for metric, row in rows.items()
        )
        first = html.escape(self.text("widget.scheduler.metric"))
        return (
            f"<table><thead><tr><th scope='col'>{first}</th>{head}</tr></thead><tbody>{body}"
            "</tbody></table>"
        )

    def _summary_table(self, run: Simulation) -> str:
        """Load, queue and cache in single numbers, as HTML."""
        found = run.summary
        shown = (
            ("requests_per_s", f"{found['requests_per_s']:.3g} /s"),
            ("tokens_per_s", numbers.rate(found["tokens_per_s"])),
            ("running", f"{found['running']:.3g}"), ("waiting", f"{found['waiting']:.3g}"),
            ("cache_occupancy_peak", numbers.percent(found["cache_occupancy_peak"])),
            ("hit_rate", numbers.percent(found["hit_rate"])),
            ("preemptions", f"{found['preemptions']:,.0f}"),
        )  # fmt: skip
        rows = "".join(
            f"<tr data-key='{name}'><th scope='row'>"
            f"{html.escape(self.text(f'widget.scheduler.sum.{name}'))}</th>"
            f"<td><b>{html.escape(value)}</b></td></tr>"
            for name, value in shown
        )
        return f"<table>{rows}</table>{note_list(run.notes, self.language)}"


def _written(value: float | None) -> str:
    """Seconds as they are printed; a dash where there are none."""
    known = value is not None and value == value  # noqa: PLR0124  # NaN differs from itself
    return html.escape(numbers.duration(value)) if known and value is not None else "–"
