"""Figures as files: complete, reopenable, atomic, and the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
import sys
from xml.etree import ElementTree as ET

import altair as alt
import polars as pl
import pytest

from ledgerkit import charts
from ledgerkit.charts import describe, open_figure, save_figure
from ledgerkit.charts._pdf import ordered_pdf
from ledgerkit.errors import FigureError
from tests.charts import samples
from tests.charts.figures import FIGURES

SUFFIXES = ("svg", "png", "pdf", "html", "json")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def chart():
    return charts.memory_bars(samples.memory(*samples.CASES), language="zh")


def parsed(svg):
    return ET.fromstring(svg)  # noqa: S314 - our own file


PROGRAM = """
import sys
from ledgerkit.charts import save_figure
from tests.charts.figures import FIGURES
for name in ("triangle-six", "cache", "panel"):
    chart = FIGURES[name](language="zh")
    for suffix in sys.argv[2].split():
        save_figure(chart, f"{sys.argv[1]}/{name}.{suffix}")
"""


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(tmp_path, root):
    digests = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        out.mkdir()
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(out), " ".join(SUFFIXES)],
            env=environment,
            cwd=root,
            check=True,
        )
        digests.append(
            {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()}
        )
    assert len(digests[0]) == 15
    assert digests[0] == digests[1]


def test_the_order_of_a_pdf_does_not_change_what_it_holds(chart, tmp_path):
    pdf = save_figure(chart, tmp_path / "figure.pdf").read_bytes()
    assert ordered_pdf(pdf) == pdf
    table = int(re.search(rb"startxref\s+(\d+)", pdf)[1])
    assert pdf[table : table + 4] == b"xref"
    lines = pdf[table:].split(b"\n")
    count = int(lines[1].split()[1])
    for number, line in enumerate(lines[3 : 2 + count], start=1):
        assert pdf[int(line.split()[0]) :].startswith(b"%d 0 obj" % number)
    with pytest.raises(FigureError, match="no trailer"):
        ordered_pdf(b"%PDF-1.7\nnothing")


def test_svg_has_title_description_role_and_language(chart, tmp_path):
    root = parsed(save_figure(chart, tmp_path / "figure.svg").read_text("utf-8"))
    assert root.get("role") == "img"
    assert root.get("{http://www.w3.org/XML/1998/namespace}lang") == "zh-CN"
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == "显存够不够：每张卡上放了什么"
    assert root[1].tag == f"{SVG}desc"
    assert root[1].text == describe(chart)
    assert root.get("aria-labelledby").split() == [root[0].get("id"), root[1].get("id")]
    fonts = {node.get("font-family") for node in root.iter(f"{SVG}text")}
    assert all(font.startswith("LedgerKit Sans SC,") for font in fonts)


def test_a_description_of_ones_own_is_escaped(chart, tmp_path):
    path = save_figure(chart, tmp_path / "figure.svg", description="a < b & c")
    assert parsed(path.read_text("utf-8"))[1].text == "a < b & c"


def test_a_source_line_adds_height_and_moves_nothing(chart, tmp_path):
    plain = parsed(save_figure(chart, tmp_path / "a.svg").read_text("utf-8"))
    path = save_figure(chart, tmp_path / "b.svg", source="Source: measured by hand")
    with_source = parsed(path.read_text("utf-8"))
    words = [[node.text for node in tree.iter(f"{SVG}text")] for tree in (plain, with_source)]
    places = [
        [node.get("transform") for node in tree.iter(f"{SVG}text")] for tree in (plain, with_source)
    ]
    assert words[1] == [*words[0], "Source: measured by hand"]
    assert places[1][:-1] == places[0]
    assert float(with_source.get("height")) == float(plain.get("height")) + 19
    assert "height" in chart.to_dict()
    assert chart.to_dict()["height"] == float(plain.get("height"))


def test_png_has_twice_the_pixels_and_says_so(chart, tmp_path):
    spec = chart.to_dict()
    for scale in (1, 2, 3):
        data = save_figure(chart, tmp_path / "figure.png", scale=scale).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = (int.from_bytes(data[start : start + 4], "big") for start in (16, 20))
        assert (width, height) == (round(spec["width"] * scale), round(spec["height"] * scale))
        at = data.index(b"pHYs") + 4
        per_metre = int.from_bytes(data[at : at + 4], "big")
        assert per_metre == pytest.approx(72 * scale / 0.0254, rel=0.01)


def test_html_is_one_page_that_asks_for_nothing(chart, tmp_path):
    page = save_figure(chart, tmp_path / "figure.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert '<html lang="zh-CN">' in page
    assert "<title>显存够不够：每张卡上放了什么</title>" in page
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert "src=" not in markup
    assert "href=" not in markup
    assert "cdn.jsdelivr" not in page


def test_a_label_cannot_end_the_script_of_a_page(tmp_path):
    case = ("</script><b>", *samples.CASES[0][1:])
    page = save_figure(
        charts.memory_bars(samples.memory(case)), tmp_path / "figure.html"
    ).read_text("utf-8")
    assert "</script><b>" not in page


@pytest.mark.parametrize("name", [name for name in FIGURES if "panel" not in name])
def test_a_json_figure_can_be_drawn_again(tmp_path, name):
    drawn = FIGURES[name](language="zh")
    path = save_figure(drawn, tmp_path / "figure.json")
    again = open_figure(path)
    assert again.to_dict() == drawn.to_dict()
    english = open_figure(path, language="en", theme="dark")
    expected = FIGURES[name](language="en", theme="dark")
    assert english.to_dict()["layer"] == expected.to_dict()["layer"]
    # and the file is plain Vega-Lite for everybody else
    alt.LayerChart.validate(json.loads(path.read_text("utf-8")))


def test_language_and_theme_draw_the_figure_again(chart, tmp_path):
    root = parsed(
        save_figure(chart, tmp_path / "a.svg", language="en", theme="dark").read_text("utf-8")
    )
    assert root[0].text == "Does it fit: what sits on each device"
    assert root.find(f"{SVG}rect").get("fill") == "#14181F"


def test_a_panel_that_cannot_be_drawn_again_says_so(tmp_path):
    panel = FIGURES["panel"](language="zh")
    save_figure(panel, tmp_path / "panel.svg", language="zh")
    with pytest.raises(FigureError, match=r"cannot be drawn again.*language='en'"):
        save_figure(panel, tmp_path / "panel.svg", language="en")


def test_objects_with_a_chart_method_are_drawn(tmp_path, chart):
    class Result:
        def chart(self, *, language="zh", theme="article"):
            return charts.memory_bars(
                samples.memory(*samples.CASES), language=language, theme=theme
            )

    save_figure(Result(), tmp_path / "a.svg", language="en")
    save_figure(chart, tmp_path / "b.svg", language="en")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    with pytest.raises(FigureError, match=r"no chart.*'int'"):
        save_figure(3, tmp_path / "c.svg")


def test_a_chart_from_elsewhere_gets_the_font(tmp_path):
    frame = pl.DataFrame({"a": [1, 2], "b": ["甲", "乙"]})
    foreign = alt.Chart(frame).mark_bar().encode(x="a", y="b").properties(description="two bars")
    svg = save_figure(foreign, tmp_path / "foreign.svg").read_text("utf-8")
    assert 'font-family="LedgerKit Sans SC' in svg
    assert "two bars</desc>" in svg
    with pytest.raises(FigureError, match="source line"):
        save_figure(foreign, tmp_path / "foreign.svg", source="nobody")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("figure.gif", r"file format.*figure\.gif.*\.svg, \.png, \.pdf, \.html, \.json"),
        ("figure", r"file format"),
        ("missing/figure.svg", r"no such directory.*create it"),
    ],
)
def test_paths_that_cannot_be_written_are_named(chart, tmp_path, name, message):
    with pytest.raises(FigureError, match=message):
        save_figure(chart, tmp_path / name)


def test_a_scale_of_nothing_is_an_error(chart, tmp_path):
    for scale in (0, -1, float("nan")):
        with pytest.raises(FigureError, match="scale"):
            save_figure(chart, tmp_path / "figure.png", scale=scale)


def test_a_figure_is_replaced_as_a_whole_or_not_at_all(chart, tmp_path, monkeypatch):
    path = save_figure(chart, tmp_path / "figure.svg")
    before = path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(FigureError, match="No space left"):
        save_figure(chart, path, language="en")
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["figure.svg"]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_files_that_are_no_figure_are_named(tmp_path):
    with pytest.raises(FigureError, match="cannot be read"):
        open_figure(tmp_path / "missing.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(FigureError, match="cannot be read"):
        open_figure(broken)
    broken.write_text('{"mark": "bar"}', encoding="utf-8")
    with pytest.raises(FigureError, match="no data to draw from"):
        open_figure(broken)
