"""``lk.read_model``: the five steps by which the article reads a new model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerkit._ledger import Ledger
from ledgerkit._readings.balance import Balance, balances
from ledgerkit._readings.fields import Field, basic_fields
from ledgerkit._readings.misreadings import Misreading, misreadings
from ledgerkit._readings.point import ReadingPoint, reading_point
from ledgerkit._readings.structures import Structure, structures
from ledgerkit.catalog.models import built_in_config, load_model
from ledgerkit.errors import LedgerError
from ledgerkit.readers.config import read_json, read_with_record
from ledgerkit.spec.model import Model
from ledgerkit.text import check_language

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from ledgerkit.loadtest import Plan
    from ledgerkit.readers.record import Record
    from ledgerkit.spec.deployment import Deployment, Workload
    from ledgerkit.spec.hardware import Hardware

__all__ = ["ModelReading", "read_model"]

_CODE = """\
import ledgerkit as lk

layout = {deployment}
plan = lk.loadtest.plan({model}, {hardware}, layout, design="sweeps")
results = lk.loadtest.run(plan, "http://localhost:8000", out="load_test.parquet")
print(lk.loadtest.diagnose(results, model={model}, hardware={hardware}, deployment=layout))
"""

_RECALL = """\
import json
import random
import urllib.request


def ask(prompt, url="http://localhost:8000/v1/completions", model={model}):
    asked = {{"model": model, "prompt": prompt, "max_tokens": 16, "temperature": 0}}
    request = urllib.request.Request(
        url, json.dumps(asked).encode(), {{"Content-Type": "application/json"}}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["text"]


random.seed(0)
for depth in {depths}:  # tokens between the fact and the question
    found = 0
    for _ in range(20):
        code = str(random.randrange(10**6, 10**7))
        filler = "The grass is green. " * (depth // 5)
        found += code in ask(f"The pass code is {{code}}. {{filler}}\\nThe pass code is")
    print(f"{{depth:>8}} tokens back: {{found}} of 20")
"""


@dataclass(frozen=True)
class ModelReading:
    """What three ledgers say about a model, step by step.

    Made by ``lk.read_model``; ``print`` shows it in the default language.

    Attributes
    ----------
    model : Model
    point : ReadingPoint
        Machine, layout and workload at which amounts are stated.
    """

    model: Model
    point: ReadingPoint
    _ref: Any
    _record: Record | None
    _config: Mapping[str, Any] | None

    def __repr__(self) -> str:
        layout, hardware = self.point.deployment, self.point.hardware
        return f"ModelReading({self.model.slug} on {layout.devices} x {hardware.slug})"

    def __str__(self) -> str:
        return self.to_markdown()

    def basic_fields(self, language: str | None = None) -> tuple[Field, ...]:
        """Step 1: the fields that the article asks for, each with where it came from."""
        return basic_fields(self.model, self._record, self._config, language)

    @cached_property
    def structures(self) -> tuple[Structure, ...]:
        """Step 2: which structure acts on which ledger."""
        return structures(self.model)

    @cached_property
    def balances(self) -> tuple[Balance, ...]:
        """Steps 3 and 4: each structure against what stands in for it, as a ``Transfer``."""
        return balances(self.point, self.structures)

    def _changes(self, *, saved: bool) -> pl.DataFrame:
        import polars as pl

        rows = [row for b in self.balances for row in b.rows() if (row["change"] < 0) == saved]
        numbers = ("before", "after", "change", "share_of_total")
        names = ("structure", "against", "phase", "resource", "ledger", *numbers)
        return pl.DataFrame(
            rows, schema={name: pl.Float64 if name in numbers else pl.String for name in names}
        )

    @property
    def savings(self) -> pl.DataFrame:
        """Step 3: what each structure saves, per busiest device and decode step or prompt.

        Columns: structure, against (what stands in for it), phase, resource, ledger, before, after,
        change, share_of_total (change over the total before). Changes below 0.5 % are left out.
        """
        return self._changes(saved=True)

    @property
    def costs(self) -> pl.DataFrame:
        """Step 4: what each structure pays for that; columns as ``savings``."""
        return self._changes(saved=False)

    @cached_property
    def ledger(self) -> Ledger:
        """The books at the operating point."""
        return self.point.books()

    @cached_property
    def _planned(self) -> tuple[Plan | None, str]:
        from ledgerkit.loadtest import plan

        try:
            return plan(self.model, self.point.hardware, self.point.deployment,
                        design="sweeps"), ""  # fmt: skip
        except LedgerError as error:
            return None, str(error)

    @property
    def load_test(self) -> Plan | None:
        """Step 5: the cells to run; None where none fits, see ``load_test_reason``."""
        return self._planned[0]

    @property
    def load_test_reason(self) -> str:
        """Why there is no load test; empty where there is one."""
        return self._planned[1]

    @property
    def load_test_code(self) -> str:
        """Lines that run and judge the load test, ready to paste."""
        named = isinstance(self._ref, str | Path)
        given = self.point.deployment.model_dump(exclude_defaults=True)
        layout = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return _CODE.format(
            model=repr(str(self._ref)) if named else "config",
            hardware=repr(self.point.hardware.slug), deployment=f"lk.Deployment({layout})",
        )  # fmt: skip

    @property
    def recall_test_code(self) -> str | None:
        """Lines that test recall over a distance on a server; None where all layers see all."""
        check = self.misreadings[-1]
        if check.verdict != "test":
            return None
        return _RECALL.format(model=repr(self.model.name), depths=check.numbers["depths"])

    @cached_property
    def misreadings(self) -> tuple[Misreading, ...]:
        """The article's misreadings, checked with this model's numbers."""
        return misreadings(self.point)

    def notes(self, language: str | None = None) -> tuple[str, ...]:
        """What the reader assumed or left out."""
        return self._record.notes(language) if self._record else self.model.notes

    def to_dict(self, language: str | None = None) -> dict[str, Any]:
        """Return the reading as plain data that JSON can hold.

        Parameters
        ----------
        language : {"zh", "en"}, optional
            Of the texts inside; default: the one of ``lk.set_language``.

        Returns
        -------
        dict
            Keys: model, point, fields, structures, savings, costs, misreadings, load_test, notes.
        """
        point = self.point
        return {
            "model": self.model.slug,
            "point": {
                "hardware": point.hardware.slug, "deployment": point.deployment.model_dump(),
                "workload": point.workload.model_dump(), "fits": self.ledger.fits,
            },
            "fields": [asdict(field) for field in self.basic_fields(language)],
            "structures": [
                {"id": s.id, "ledger": s.ledger, "also": list(s.also), "layers": s.layers,
                 **s.numbers, "risks": list(s.risks), "source": s.source}
                for s in self.structures
            ],
            "savings": self.savings.to_dicts(),
            "costs": self.costs.to_dicts(),
            "misreadings": [asdict(check) for check in self.misreadings],
            "load_test": None if self.load_test is None else self.load_test.record(),
            "notes": list(self.notes(language)),
        }  # fmt: skip

    def to_markdown(self, language: str | None = None) -> str:
        """Return the reading as Markdown.

        Parameters
        ----------
        language : {"zh", "en"}, optional
            Default: the one of ``lk.set_language``.

        Returns
        -------
        str
        """
        from ledgerkit._readings import document, words

        return document.markdown(words.blocks(self, check_language(language)))

    def to_html(self, language: str | None = None) -> str:
        """Return the reading as one HTML page that needs no other file.

        Parameters
        ----------
        language : {"zh", "en"}, optional
            Default: the one of ``lk.set_language``.

        Returns
        -------
        str
        """
        from ledgerkit._readings import document, words

        used = check_language(language)
        return document.page(words.blocks(self, used), used, self.model.name)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def chart(self, **options: Any) -> alt.TopLevelMixin:
        """Draw the ledger of the operating point; options as in ``lk.charts.ledger_bars``."""
        return self.ledger.chart(**options)


def read_model(
    ref: Model | Mapping[str, Any] | str | Path,
    *,
    hardware: Hardware | str | dict[str, Any] | None = None,
    deployment: Deployment | dict[str, Any] | None = None,
    workload: Workload | dict[str, Any] | None = None,
) -> ModelReading:
    """Read a model by the five steps: fields, ledgers, savings, costs, load test.

    Parameters
    ----------
    ref : Model, slug, path or config dict
        As for ``lk.load_model``.
    hardware : Hardware, slug or dict, optional
        Default: H200.
    deployment : Deployment or dict, optional
        Default: the fewest devices that certainly hold the model, tp first.
    workload : Workload or dict, optional
        Default: 8,192 prompt and 512 output tokens, 8 sequences at once, or less where the model
        ends before.

    Returns
    -------
    ModelReading

    Raises
    ------
    LedgerError
        The model cannot be read, or what was stated cannot be built.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> reading = lk.read_model("deepseek-v3")
    >>> [(s.id, s.ledger) for s in reading.structures][:2]
    [('mla', 'attention_kv'), ('dense', 'ffn_mlp')]
    >>> reading.misreadings[0].verdict
    'refuted'
    """
    model, record, config = _read(ref)
    return ModelReading(
        model, reading_point(model, hardware, deployment, workload), ref, record, config
    )


def _read(
    ref: Model | Mapping[str, Any] | str | Path,
) -> tuple[Model, Record | None, Mapping[str, Any] | None]:
    """Model, and the record and content of its config where it has one."""
    if isinstance(ref, Mapping):
        return *read_with_record(ref), ref
    if isinstance(ref, str):
        found = built_in_config(ref)
        if found is not None:
            return *read_with_record(found[1], found[0]), found[1]
    if isinstance(ref, str | Path):
        path = Path(ref)
        path = path / "config.json" if path.is_dir() else path
        if path.suffix == ".json" and path.is_file():
            config = read_json(path)
            return *read_with_record(ref), config
    return load_model(ref), None, None
