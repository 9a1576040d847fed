"""The stack itself works without network: a slider drives an offline chart in JupyterLab."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import LabPage, is_loopback, write_notebook

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.browser

BLUE = '.vega-embed .role-mark path[fill="#0072b2"]'

SLIDER_AND_CHART = """
import altair as alt
import ipywidgets as widgets
import polars as pl

alt.JupyterChart.enable_offline()
slider = widgets.IntSlider(value=10, min=0, max=40, description="cut")
label = widgets.Label(value="cut=10")
frame = pl.DataFrame({"x": list(range(40))})


def draw(cut):
    chart = alt.Chart(frame.with_columns(kept=pl.col("x") < cut)).mark_point(filled=True)
    scale = alt.Scale(domain=[True, False], range=["#0072b2", "#d55e00"])
    return chart.encode(x="x", color=alt.Color("kept", scale=scale))


chart = alt.JupyterChart(draw(10), embed_options={"renderer": "svg", "actions": False})


def move(change):
    label.value = f"cut={change.new}"
    chart.chart = draw(change.new)


slider.observe(move, names="value")
widgets.VBox([slider, label, chart])
"""


def test_slider_moves_marks_and_label_without_network(lab: LabPage, tmp_path: Path) -> None:
    lab.run(write_notebook(tmp_path / "slider.ipynb", SLIDER_AND_CHART))
    page = lab.page
    page.wait_for_selector(".vega-embed svg.marks")
    marks = page.locator(".vega-embed svg.marks .mark-symbol.role-mark path")
    assert marks.count() == 40
    assert page.locator(BLUE).count() == 10

    handle = page.locator(".noUi-handle").first
    handle.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.get_by_text("cut=15", exact=True).wait_for()
    page.wait_for_function(
        "selector => document.querySelectorAll(selector).length === 15", arg=BLUE
    )
    assert lab.outside_requests == []


def test_an_error_in_a_cell_is_raised(lab: LabPage, tmp_path: Path) -> None:
    notebook = write_notebook(tmp_path / "broken.ipynb", "1 / 0", "2")
    with pytest.raises(AssertionError, match=re.escape("ZeroDivisionError: division by zero")):
        lab.run(notebook)


def test_the_page_reaches_nothing_but_this_machine(lab: LabPage, tmp_path: Path) -> None:
    lab.open(write_notebook(tmp_path / "empty.ipynb", "1"))
    lab.page.evaluate("() => fetch('https://example.org/x').catch(() => null)")
    assert lab.outside_requests == ["https://example.org/x"]


@pytest.mark.parametrize(
    ("url", "stays"),
    [
        ("http://127.0.0.1:8888/lab", True),
        ("data:text/plain,x", True),
        ("https://cdn.example.org/vega.js", False),
        ("http://127.0.0.1.example.org/", False),
    ],
)
def test_loopback(url: str, *, stays: bool) -> None:
    assert is_loopback(url) is stays
