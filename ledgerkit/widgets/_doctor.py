"""``LoadTestDoctor``: results of a load test in, a verdict with its evidence out."""

from __future__ import annotations

import html
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import ipywidgets as w
import polars as pl
import traitlets as t

from ledgerkit._ledger import ledger
from ledgerkit.loadtest import Diagnosis, Results, diagnose, read
from ledgerkit.spec.deployment import Workload
from ledgerkit.widgets._base import heading, select
from ledgerkit.widgets._code import call, deployment_code, model_code
from ledgerkit.widgets._deployment import DEPLOYMENT, DeploymentPanel, K

FIGURES = ("verdict", "ratio", "sensitivity")
SUFFIXES = (".json", ".jsonl", ".csv", ".md", ".parquet")
EXAMPLE = "example"
_MOST_FILES = 50


class LoadTestDoctor(DeploymentPanel):
    """Says which ledger a load test points at, and what to measure next.

    Parameters
    ----------
    results : path, Results or polars.DataFrame, optional
        What ``lk.loadtest.diagnose`` takes; ``"example"`` shows computed numbers.
    model, hardware : str, Path, dict or Model; str
        What was served, and on what.
    language : {"zh", "en"}, optional
    theme : {"article", "dark"}
    folder : path
        Where the result files of the list are.
    **state : object
        Fields of ``Deployment``; ``prompt_tokens`` and ``concurrency``: the operating point, by
        default the middle of what was measured; ``anchored``: whether to compare with what the
        model predicts; ``figure``: ``"verdict"``, ``"ratio"`` or ``"sensitivity"``.

    Attributes
    ----------
    diagnosis : Diagnosis or None
        Verdict, shares with intervals, findings.

    Examples
    --------
    >>> doctor = LoadTestDoctor("example", "llama-3.1-8b", "h100-sxm-80gb")
    >>> doctor.diagnosis.verdict in ("attention_kv", "weights", "mixed", "undetermined")
    True
    >>> doctor.close()
    """

    figure = t.Enum(FIGURES, default_value="verdict", help="which chart is shown")
    anchored = t.Bool(default_value=True, help="compare with what the model predicts")

    GROUPS: ClassVar = (
        ("point", ("prompt_tokens", "concurrency")), ("model", ("anchored", "model")),
        ("machine", ("hardware",)), ("deployment", DEPLOYMENT), ("view", ("figure",)),
    )  # fmt: skip

    def __init__(
        self,
        results: Any = None,
        model: Any = "llama-3.1-8b",
        hardware: str = "h100-sxm-80gb",
        *,
        language: str | None = None,
        theme: str = "article",
        folder: str | Path = ".",
        **state: Any,
    ) -> None:
        super().__init__("doctor", model, hardware, state, language=language, theme=theme)
        self.diagnosis: Diagnosis | None = None
        self._words = w.HTML()
        self._folder = Path(folder)
        self._results: Any = None
        self._source = ""
        self._placed = bool({"prompt_tokens", "concurrency"} & set(state))
        self._build()
        try:
            if results is not None:
                self._take(results)
        except Exception:
            self.close()
            raise
        self._refresh()

    # results ------------------------------------------------------------------------------------

    def take(self, results: Any) -> None:
        """Diagnose other results, at the middle of what they measured.

        Parameters
        ----------
        results : path, paths, Results or polars.DataFrame
            What ``lk.loadtest.diagnose`` takes; ``"example"`` shows computed numbers.

        Raises
        ------
        LoadTestError
            They cannot be read.
        """
        with self._lock:
            self._take(results)
            self._placed = False
        self._refresh()

    def _take(self, given: Any, source: str = "") -> None:
        if isinstance(given, str) and given == EXAMPLE:
            frame = self._example()
            found, code = frame, _frame_code(frame)
        elif isinstance(given, pl.DataFrame):
            found, code = given, _frame_code(given)
        elif isinstance(given, Results):
            found, code = given.cells, _frame_code(given.cells)
        else:
            found = read(given).cells
            code = call("lk.loadtest.read", [source or repr(_plain(given))]) + ".cells"
        self._results, self._source = found, code

    def _example(self) -> pl.DataFrame:
        """Times that the model predicts, as a load test of three runs would report them."""
        rows = []
        for context in (K, 8 * K, 32 * K):
            for many in (1, 8, 32):
                work = Workload(prompt_tokens=context, output_tokens=256, concurrency=many)
                books = ledger(self._model(), self.hardware, self._deployment(), work)
                rows += [
                    {"prompt_tokens": context, "concurrency_requested": many, "run": run,
                     "itl_s": round(books.tpot_s * (1 + 0.004 * (run - 1)), 7)}
                    for run in range(3)
                ]  # fmt: skip
        return pl.DataFrame(rows)

    # view ---------------------------------------------------------------------------------------

    def _own_controls(self) -> dict[str, Any]:
        figures = [(self.text(f"widget.doctor.{name}"), name) for name in FIGURES]
        anchored = w.Checkbox(value=self.anchored, indent=False,
                              description=self.text("widget.doctor.anchored"))  # fmt: skip
        figure = select(figures, self.figure, label=self.text("widget.doctor.figure"), long=True)
        return {"anchored": anchored, "figure": figure}

    def _build(self) -> None:
        super()._build()
        options = [(self.text("widget.doctor.none"), ""),
                   (self.text("widget.doctor.example"), EXAMPLE)]  # fmt: skip
        options += [(path.name, str(path)) for path in _result_files(self._folder)]
        pick = select(options, "", label=self.text("widget.doctor.pick"))
        pick.observe(self._picked, names="value")
        upload = w.FileUpload(
            accept=",".join(SUFFIXES), multiple=True, layout=w.Layout(width="auto"),
            description=self.text("widget.doctor.upload"),
            tooltip=self.text("widget.doctor.upload"),
        )  # fmt: skip
        upload.observe(self._uploaded, names="value")
        self._side.children = (
            heading(self.text("widget.group.results")), pick, upload, *self._side.children,
        )  # fmt: skip
        self._detail.children = (self._words, self._python)
        self._detail.add_class("ledgerkit-wide")

    def _picked(self, change: dict[str, Any]) -> None:
        if change["new"]:
            with self._hands_on():
                self.take(change["new"])

    def _uploaded(self, change: dict[str, Any]) -> None:
        with self._hands_on(), tempfile.TemporaryDirectory() as directory:
            paths = []
            for file in change["new"]:
                # only the last part of the name: it comes from outside
                path = Path(directory) / Path(str(file["name"])).name
                path.write_bytes(bytes(file["content"]))
                paths.append(path)
            if not paths:
                return
            names = [path.name for path in paths]
            with self._lock:
                self._take(paths, repr(names[0] if len(names) == 1 else names))
                self._placed = False
            self._refresh()

    @t.observe("figure", "anchored")
    def _view_changed(self, change: dict[str, Any]) -> None:
        if self._controls:
            self._follow(change["name"])
            self._refresh()

    @t.observe("prompt_tokens", "concurrency")
    def _point_moved(self, _change: dict[str, Any]) -> None:
        self._placed = True

    def _draw(self) -> None:
        if self._results is None:
            self.diagnosis = None
            self._show(None, "")
            empty = html.escape(self.text("widget.doctor.empty"))
            self._words.value = f"<p>{empty}</p>"
            return
        served: dict[str, Any] = {}
        if self.anchored:
            served = {"model": self._model(), "hardware": self.hardware}
        if not self._placed:
            middle = diagnose(self._results, deployment=self._deployment(), **served)
            self.set_trait("prompt_tokens", max(1, round(middle.context_tokens)))
            self.set_trait("concurrency", max(1, round(middle.concurrency)))
            self._placed = True
        at = (self.prompt_tokens, self.concurrency)
        found = diagnose(self._results, deployment=self._deployment(), at=at, **served)
        chart = found.chart(self.figure, language=self.language, theme=self.theme)
        self.diagnosis = found
        arguments = ["results"]
        if self.anchored:
            reference = self._references.get(self.model, self.model)
            arguments += [f"model={model_code(reference)}", f"hardware={self.hardware!r}"]
        arguments += [f"deployment={deployment_code(self._deployment())}", f"at={at}"]
        polars = "import polars as pl\n" if self._source.startswith("pl.") else ""
        options = f"language={self.language!r}, theme={self.theme!r}"
        verdict, *reasons = map(html.escape, found.text(self.language).splitlines())
        told = "".join(f"<p>{reason}</p>" for reason in reasons)
        self._words.value = f"<div class='ledgerkit-verdict'><h4>{verdict}</h4>{told}</div>"
        self._show(
            chart,
            f"import ledgerkit as lk\n{polars}\nresults = {self._source}\n"
            f"found = {call('lk.loadtest.diagnose', arguments)}\n"
            f"found.chart({self.figure!r}, {options})\n",
        )


def _result_files(folder: Path) -> list[Path]:
    """Files that may hold results, by name."""
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    except OSError:
        return []
    return found[:_MOST_FILES]


def _frame_code(frame: pl.DataFrame) -> str:
    """Source of a frame, without the columns that hold nothing."""
    kept = [name for name in frame.columns if frame[name].null_count() < frame.height]
    lines = [f"{name!r}: {frame[name].to_list()!r}" for name in kept]
    body = "".join(f"    {line},\n" for line in lines)
    return f"pl.DataFrame({{\n{body}}})"


def _plain(given: Any) -> Any:
    if isinstance(given, str | Path):
        return str(given)
    return [str(one) for one in given] if isinstance(given, Iterable) else given
