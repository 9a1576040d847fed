"""Colours can be told apart and read, in every theme and by every reader."""

from __future__ import annotations

from itertools import combinations, pairwise

import polars as pl
import pytest

from ledgerkit.charts import ledger_triangle, memory_bars, simulation_engines
from ledgerkit.charts._contrast import contrast as own_contrast
from ledgerkit.charts._contrast import readable_on
from ledgerkit.charts._memory_row import colors
from ledgerkit.charts.simulation import PARTS
from ledgerkit.charts.theme import GROUPS, THEMES, assign_series
from ledgerkit.errors import FigureError
from ledgerkit.spec.axes import ACCOUNTS, LEDGERS
from tests.charts import samples
from tests.charts.color import DEFICIENCIES, contrast, difference, lab
from tests.charts.figures import words_of

THEME = pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))


def test_the_reference_for_these_tests_is_right():
    # pairs 1 and 7 of the test data of Sharma, Wu and Dalal are in Lab; these two are in sRGB
    assert difference("#FFFFFF", "#FFFFFF") == 0
    assert difference("#FFFFFF", "#000000") == pytest.approx(100, abs=0.01)
    assert contrast("#FFFFFF", "#000000") == pytest.approx(21)
    assert own_contrast("#163F85", "#FFFFFF") == pytest.approx(contrast("#163F85", "#FFFFFF"))


@THEME
def test_text_has_a_contrast_of_four_and_a_half(theme):
    words = [theme.ink, theme.mute, theme.alert, *theme.text.values(), *theme.series]
    grounds = [theme.background, *theme.wash.values()]
    for word in words:
        for ground in grounds:
            assert contrast(word, ground) >= 4.5, (word, ground)
    assert contrast(theme.mute, theme.free) >= 4.5


@THEME
def test_marks_and_lines_have_a_contrast_of_three(theme):
    for mark in (*theme.fill.values(), *theme.series, theme.rule, theme.alert):
        assert contrast(mark, theme.background) >= 3, mark
    for mark in theme.series:
        for wash in theme.wash.values():
            assert contrast(mark, wash) >= 3, (mark, wash)


@THEME
def test_ledgers_are_told_apart_by_every_reader_and_in_grey(theme):
    for one, other in combinations(theme.fill.values(), 2):
        for deficiency in DEFICIENCIES:
            assert difference(one, other, deficiency) >= 17, (one, other, deficiency)
    greys = [lab(theme.fill[ledger])[0] for ledger in LEDGERS]
    assert min(abs(a - b) for a, b in combinations(greys, 2)) >= 5
    assert abs(greys[0] - greys[1]) >= 5


@THEME
def test_models_are_told_apart_by_every_reader(theme):
    assert len(theme.series) == 6
    for one, other in combinations(theme.series, 2):
        for deficiency in DEFICIENCIES:
            assert difference(one, other, deficiency) >= 10, (one, other, deficiency)


@THEME
def test_no_model_has_the_colour_of_a_ledger(theme):
    # dark has less room: its purple stands nearer to the blue of attention
    least = 10 if theme.name == "dark" else 18
    for model in theme.series:
        for ledger in theme.fill.values():
            assert difference(model, ledger) >= least, (model, ledger)


@THEME
def test_neighbouring_tints_show_their_boundary(theme):
    for ledger in LEDGERS:
        assert list(theme.tints[ledger]) == list(GROUPS[ledger])
        tints = list(theme.tints[ledger].values())
        for one, other in pairwise(tints):
            assert difference(one, other) >= 3.5, (one, other)
        assert len(set(tints)) == len(tints)


@THEME
def test_numbers_inside_memory_bars_can_be_read(theme):
    chart = memory_bars(samples.memory(("One", (30.0, 30.0, 30.0, 30.0), 151.0, 1)), theme=theme)
    fills = {
        fill
        for fill in colors(theme).values()
        if own_contrast(readable_on(fill, theme), fill) >= 4.5
    }
    shown = [word for word in words_of(chart) if word == "30.0 GB"]
    # a colour on which neither ink nor background reads carries no number
    assert len(shown) == len(fills)
    assert len(fills) >= 3
    for fill in fills:
        assert contrast(readable_on(fill, theme), fill) >= 4.5


def test_every_account_is_drawn_somewhere():
    for ledger, accounts in ACCOUNTS.items():
        drawn = [account for group in GROUPS[ledger].values() for account in group]
        assert sorted(drawn) == sorted(accounts)


def test_families_keep_their_colour_and_shape_whatever_stands_beside_them():
    theme = THEMES["article"]
    alone = assign_series([("Kimi-K2.6", "kimi-k2.6")], theme)["Kimi-K2.6"]
    crowd = assign_series(
        [("Llama", "llama"), ("Qwen", "qwen"), ("Kimi-K2.6", "kimi-k2.6"), ("V3", "deepseek-v3")],
        theme,
    )
    assert crowd["Kimi-K2.6"] == alone
    assert crowd["V3"].shape == "circle"
    assert len({one.color for one in crowd.values()}) == 4
    assert len({one.shape for one in crowd.values()}) == 4


def test_two_of_a_family_differ_and_the_seventh_is_grey():
    theme = THEMES["dark"]
    six = assign_series([(f"DeepSeek {i}", "deepseek") for i in range(7)], theme)
    colours = [one.color for one in six.values()]
    assert len(set(colours[:6])) == 6
    assert colours[6] == theme.mute


def test_an_unknown_theme_or_preset_is_named():
    table = samples.comparison([samples.GEMMA])
    with pytest.raises(FigureError, match=r"unknown theme.*'neon'.*article, slide, dark"):
        ledger_triangle(table, theme="neon")
    with pytest.raises(FigureError, match=r"preset.*'poster'.*article, phone"):
        ledger_triangle(table, preset="poster")
    with pytest.raises(FigureError, match=r"language.*'fr'.*zh, en"):
        ledger_triangle(table, language="fr")
    with pytest.raises(FigureError, match=r"form.*'square'"):
        ledger_triangle(table, form="square")
    with pytest.raises(FigureError, match=r"trail.*'tp'"):
        ledger_triangle(table, trail="tp")


@pytest.mark.parametrize("name", THEMES)
def test_neighbours_in_the_bars_of_a_run_keep_apart(name):
    parts = [("attention_kv", "core"), ("ffn_mlp", "dense")]
    parts += [("scheduling", one) for one in ("tp", *PARTS[3:])]
    ledgers, accounts = zip(*parts, strict=True)
    books = pl.DataFrame({"engine": "a", "ledger": ledgers, "account": accounts, "share": 1 / 9})
    bars = simulation_engines(books, theme=name, language="en").to_dict()
    shades = bars["encoding"]["color"]["scale"]["range"]
    assert len(shades) == len(PARTS)
    for one, other in pairwise(shades):
        assert difference(one, other) > 8, (one, other)
