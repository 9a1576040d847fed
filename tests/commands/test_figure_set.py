"""A set of figures: the same bytes twice, a manifest that holds, texts from the data."""

from __future__ import annotations

import hashlib
import json

import nbformat
import pytest

from ledgerkit.__main__ import main
from ledgerkit._commands import figures
from ledgerkit.charts import describe, open_figure

PARAMETERS = "language = 'en'\nout = None"
DRAW = """
import polars as pl, ledgerkit as lk
if out is not None:
    rows = {"label": "Gemma", "component": "cache", "bytes_device": 28e9, "capacity_bytes": 85e9,
            "limit_bytes": 78e9, "max_concurrency": 28}
    for code in ("en", "zh"):
        figure = lk.charts.memory_bars(pl.DataFrame([rows]), language=code)
        for suffix in ("svg", "png", "pdf", "json"):
            lk.save_figure(figure, f"{out}/memory.{code}.{suffix}")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two runs of the same notebook into two directories."""
    place = tmp_path_factory.mktemp("figures")
    cells = [
        nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}, id="one"),
        nbformat.v4.new_code_cell(DRAW, id="two"),
    ]
    notebook = place / "memory.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
    runs = []
    for name in ("first", "second"):
        arguments = ["--notebook", str(notebook), "--out", str(place / name)]
        assert main(["figures", *arguments, "--themes", "slide", "dark"]) == 0
        runs.append(place / name)
    return runs


pytestmark = pytest.mark.notebook


def test_a_second_run_writes_the_same_bytes(made):
    first, second = (
        {path.name: path.read_bytes() for path in run.iterdir() if path.suffix != ".ipynb"}
        for run in made
    )
    assert first == second
    assert len([name for name in first if name.endswith((".svg", ".png", ".pdf"))]) == 2 * 3 * 3


def test_the_manifest_holds_inputs_versions_and_checksums(made):
    run = made[0]
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["options"] == {"language": "en", "themes": ["dark", "slide"]}
    assert {"ledgerkit", "python", "altair", "polars", "vl-convert-python"} <= set(
        manifest["made_with"]
    )
    assert {"notebooks/memory.ipynb", "data/hardware.csv", "data/models"} <= set(manifest["inputs"])
    source = (run.parent / "memory.ipynb").read_bytes()
    assert manifest["inputs"]["notebooks/memory.ipynb"] == hashlib.sha256(source).hexdigest()
    written = {path.name for path in run.iterdir()} - {"memory.ipynb", "manifest.json"}
    assert set(manifest["files"]) == written
    for name, facts in manifest["files"].items():
        content = (run / name).read_bytes()
        assert facts == {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def test_every_figure_opens_again_and_its_captions_come_from_the_data(made):
    run = made[0]
    for language, words in (("en", "28.0 GB"), ("zh", "28.0 GB")):
        path = run / f"memory.{language}.json"
        again = open_figure(path)
        assert again.to_dict() == json.loads(path.read_text(encoding="utf-8"))
        captions = (run / f"captions.{language}.md").read_text(encoding="utf-8")
        assert f"## memory.{language}" in captions
        assert describe(again) in captions
        assert words in captions
    assert "显存" in (run / "captions.zh.md").read_text(encoding="utf-8")


def test_all_takes_each_notebook_with_figures_once():
    names = [path.name for path in figures._notebooks_with_figures()]
    assert "01_three_ledgers.ipynb" in names
    assert "03_sweeps.ipynb" in names
    assert not any(".zh." in name for name in names)
