"""Figures of a diagnosis: what they say, in both languages, and that words keep apart."""

import itertools
import json

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.charts._loadtest_plane import SHADES, Plane, contour, shade
from ledgerkit.charts.metrics import Box, text_box
from ledgerkit.errors import FigureError
from tests.loadtest.test_diagnose import dense, rows

KINDS = ("verdict", "ratio", "sensitivity")


@pytest.fixture(scope="module")
def found():
    model, device = lk.load_model("llama-3.1-8b"), lk.load_hardware("h100-sxm-80gb")
    cells = [rows(dense, (1024, 8192), (1, 4, 8, 16)), rows(dense, (32768,), (1, 4, 8))]
    frame = pl.concat([*cells, rows(dense, (130_000,), (1,))])
    return lk.loadtest.diagnose(
        frame, model=model, hardware=device, deployment=lk.Deployment(), at=(32768, 8)
    )


@pytest.fixture(scope="module")
def unsettled():
    return lk.loadtest.diagnose(rows(dense, (1024, 2048), (1, 2), noise=0.15), at=(8192, 8))


def words(chart):
    spec = chart.to_dict()
    found = []
    for layer in spec["layer"]:
        if layer["mark"]["type"] == "text":
            mark = layer["mark"]  # what all rows share stands in the mark
            shared = {"size": mark.get("fontSize"), "color": mark.get("color"),
                      "align": mark.get("align", "center"),
                      "bold": mark.get("fontWeight", 400) >= 700}  # fmt: skip
            data = layer["data"].get("values") or spec["datasets"][layer["data"]["name"]]
            found += [{**shared, **row} for row in data]
    return [row for row in found if row.get("text")]


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("kind", KINDS)
def test_figures_say_what_was_found(found, kind, language):
    chart = found.chart(kind, language=language)
    text = " ".join(str(row["text"]) for row in words(chart))
    if kind == "verdict":
        word = "Attention / KV"
        assert word in text
        assert ("显存放不下" if language == "zh" else "does not fit") in text
        assert "20%" in text
        assert "50%" in text
    assert chart.to_dict()["width"] == 700
    assert chart.to_dict()["description"]


@pytest.fixture(scope="module")
def recorded():
    """A test with wide intervals: its ratios reach far."""
    results = lk.loadtest.recorded("smollm2-135m")
    return lk.loadtest.diagnose(
        results,
        model=lk.Model.model_validate(results.provenance["model"]),
        hardware=results.provenance["device"],
        deployment={"kv_dtype": "fp16", "engine": "llama.cpp"},
        at=(2160, 1),
    )


@pytest.mark.parametrize("theme", ["article", "slide", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_words_are_large_enough_and_keep_apart(found, unsettled, recorded, kind, theme):
    from ledgerkit.charts import loadtest as charts

    for diagnosis, language in itertools.product((found, unsettled, recorded), ("zh", "en")):
        chart = getattr(charts, f"draw_{kind}")(diagnosis, language=language, theme=theme)
        boxes = []
        for row in words(chart):
            assert row["size"] >= 12
            box = text_box(row["x"], row["y"], str(row["text"]), size=row["size"],
                           bold=row["bold"], align=row["align"])  # fmt: skip
            assert box.left >= 2
            assert box.right <= 700
            boxes.append((row["text"], box))
        for (a, first), (b, second) in itertools.combinations(boxes, 2):
            across, down = first.overlap(second)
            assert across <= 0.5 or down <= 5.5, f"{a!r} over {b!r}"


def test_the_phone_has_its_own_layout(found):
    from ledgerkit.charts.loadtest import draw_verdict

    chart = draw_verdict(found, language="zh", preset="phone")
    assert chart.to_dict()["width"] == 420
    with pytest.raises(FigureError):
        draw_verdict(found, preset="poster")


def test_an_open_verdict_has_no_ledger_colour_and_shows_what_is_missing(unsettled):
    chart = unsettled.chart("verdict", language="zh")
    texts = words(chart)
    assert any(row["text"] == "尚不能判断" for row in texts)
    assert any(row["text"] == "需补测" for row in texts)
    verdict = next(row for row in texts if row["text"] == "尚不能判断")
    assert verdict["color"] == "#1B1F27"


def test_a_bad_fit_draws_no_map():
    def bent(c, b):
        return dense(c, b) * (1.6 if b == 8 else 1.0)

    bad = lk.loadtest.diagnose(rows(bent))
    spec = json.dumps(bad.chart("verdict", language="en").to_dict())
    good = json.dumps(lk.loadtest.diagnose(rows(dense)).chart("verdict", language="en").to_dict())
    assert len(spec) < len(good) / 2
    assert "no fit good enough" in spec


def test_runs_that_were_left_out_are_drawn_as_crosses():
    frame = rows(dense, preemptions=lambda c, b: float(c == 131072 and b == 16))
    found = lk.loadtest.diagnose(frame)
    assert found.left_out.height == 3
    spec = json.dumps(found.chart("verdict", language="zh").to_dict(), ensure_ascii=False)
    assert '"cross"' in spec
    assert "被抢占" in spec
    clean = json.dumps(lk.loadtest.diagnose(rows(dense)).chart("verdict").to_dict())
    assert '"cross"' not in clean


def test_an_unknown_kind_lists_the_known(found):
    with pytest.raises(FigureError, match="verdict"):
        found.chart("pie")


def test_the_same_figure_has_the_same_bytes(found):
    a = json.dumps(found.chart("verdict", language="zh").to_dict())
    b = json.dumps(found.chart("verdict", language="zh").to_dict())
    assert a == b


def test_figures_can_be_opened_again(found, tmp_path):
    path = tmp_path / "verdict.json"
    lk.save_figure(found.chart("verdict", language="en"), path)
    again = lk.charts.open_figure(path, language="zh")
    assert "压测判断" in " ".join(str(row["text"]) for row in words(again))


def test_contours_lie_where_the_share_is():
    plane = Plane(Box(0, 0, 100, 100), (10, 17), (0, 6))

    def share(context, batch):
        part = 4e-5 * batch * context
        return part / (6 + 0.02 * batch + part)

    for level in (0.2, 0.5):
        points = contour(plane, share, level)
        assert len(points) > 10
        for x, y in points:
            context = 2 ** (10 + x / 100 * 7)
            batch = 2 ** (6 - y / 100 * 6)
            assert share(context, batch) == pytest.approx(level, abs=1e-3)


def test_shades_are_one_ramp_from_light_to_dark():
    values = [sum(int(shade(i / 20, SHADES["article"])[k : k + 2], 16) for k in (1, 3, 5))
              for i in range(21)]  # fmt: skip
    assert values == sorted(values, reverse=True)
