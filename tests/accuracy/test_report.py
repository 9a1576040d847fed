"""The page and its charts."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ledgerkit import charts
from ledgerkit.__main__ import main
from ledgerkit._accuracy import report
from ledgerkit._accuracy.frames import group_frame, row_frame
from ledgerkit._accuracy.score import Group, groups, score, worst
from ledgerkit.errors import FigureError


def test_the_command_writes_the_page_without_any_file(tmp_path, capsys):
    page = tmp_path / "deep" / "ACCURACY.md"
    assert main(["accuracy", "--quick", "--out", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Accuracy\n")
    for part in ("## Result", "## Gates", "## Bands", "## The ten worst groups",
                 "## Disaggregated", "## Host constants", "No row was refused."):  # fmt: skip
        assert part in text
    assert "TPOT median" in capsys.readouterr().out
    assert "{" not in text


def test_tables_are_rectangular(public):
    page = report.render(public, "en", source="")
    blocks = re.findall(r"(?:^\|.*\|\n?)+", page, flags=re.MULTILINE)
    assert len(blocks) > 12
    for block in blocks:
        widths = {line.count("|") for line in block.strip().splitlines()}
        assert len(widths) == 1, block


def test_the_page_speaks_chinese(public):
    page = report.render(public, "zh", source="")
    assert "# 准确度" in page
    assert "最差的十组" in page
    assert not re.search(r"accuracy\.\w", page)


def test_a_missing_file_is_an_error_with_a_reason(tmp_path, capsys):
    assert main(["accuracy", str(tmp_path / "none.csv"), "--quick"]) == 2
    assert "no such file" in capsys.readouterr().err


def test_check_fails_when_a_gate_is_missed(tmp_path, public):
    missed = any(not gate.met for gate in report.gates(public, "en"))
    status = main(["accuracy", "--quick", "--check", "--out", str(tmp_path / "a.md")])
    assert status == int(missed)


def test_groups_score_their_own_rows():
    names = ["a", "a", "b"]
    predicted, measured = np.array([1.1, 1.3, 0.5]), np.ones(3)
    first, second = groups(names, (predicted, measured), (predicted, measured), np.array([1, 1, 0]))
    assert (first.name, first.tpot.rows, second.tpot.rows) == ("a", 2, 1)
    assert first.tpot.median == pytest.approx(20)
    assert first.tpot.bias == pytest.approx(20)
    assert second.tpot.bias == pytest.approx(-50)
    assert second.ttft is None


def test_the_worst_groups_say_how_they_are_wrong():
    names = ["level"] * 5 + ["slope"] * 5
    clients = np.array([1.0, 4, 16, 64, 256] * 2)
    residuals = np.concatenate([np.full(5, 0.4), 0.1 * np.log(clients[:5])])
    predicted = np.exp(residuals)
    found = [
        Group(name, score(predicted[i : i + 5], np.ones(5)), None)
        for i, name in ((0, "level"), (5, "slope"))
    ]
    level, slope = sorted(
        worst(found, names, residuals, clients, lambda _: ("work", 0.5)),
        key=lambda one: one.group.name,
    )
    assert level.offset == pytest.approx(0.4)
    assert level.scatter == pytest.approx(0.0)
    assert slope.with_load == pytest.approx(1.0)


def test_frames_hold_every_judged_row_once(public):
    rows = row_frame(public)
    assert rows.filter(quantity="tpot")["rows"].sum() == len(public.judged)
    assert rows.filter(quantity="ttft")["rows"].sum() == int(public.targets.ttft_judged.sum())
    by_group = group_frame(public)
    assert by_group["rows"].sum() == len(public.judged)
    assert (by_group["low"] <= by_group["median"]).all()
    assert (by_group["median"] <= by_group["high"]).all()


@pytest.mark.parametrize("language", ["zh", "en"])
def test_charts_mark_every_group_and_hold_their_words(public, language):
    scatter = charts.accuracy_scatter(row_frame(public), language=language).to_dict()
    points = [
        row
        for layer in scatter["layer"]
        if layer["mark"]["type"] == "point"
        for row in layer["data"]["values"]
    ]
    models = row_frame(public)["model"].n_unique()
    assert len(points) == row_frame(public).height + models
    assert all(20 <= point["x"] <= 680 for point in points)
    bars = charts.accuracy_groups(group_frame(public), language=language).to_dict()
    words = [
        row["text"]
        for layer in bars["layer"]
        if layer["mark"]["type"] == "text"
        for row in layer["data"]["values"]
    ]
    assert sum(name in " ".join(words) for name in group_frame(public)["group"]) == 22
    finding = scatter["usermeta"]["ledgerkit"]["finding"]
    assert re.search(r"\d\.\d\d", finding)


def test_charts_refuse_empty_frames(public):
    with pytest.raises(FigureError):
        charts.accuracy_scatter(row_frame(public).filter(quantity="tpot"))
    with pytest.raises(FigureError):
        charts.accuracy_groups(group_frame(public).head(0))
    with pytest.raises(FigureError):
        charts.accuracy_groups(group_frame(public).drop("median"))
