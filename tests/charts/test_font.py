"""The shipped font: complete for every string, under its own name, and really used."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from fontTools.ttLib import TTFont

from ledgerkit import text
from ledgerkit.charts import memory_bars, save_figure
from tests.charts import samples

WEIGHTS = ("Regular", "Bold")


@pytest.fixture(scope="module")
def fonts(root):
    return {
        weight: TTFont(root / "data" / "fonts" / f"LedgerKitSansSC-{weight}.otf")
        for weight in WEIGHTS
    }


@pytest.mark.parametrize("weight", WEIGHTS)
def test_it_has_every_character_that_a_string_uses(fonts, weight):
    drawn = fonts[weight].getBestCmap()
    used = {
        character
        for table in text.tables().values()
        for pair in table.values()
        for template in pair.values()
        for character in template
        if character != "\n"
    }
    assert {c for c in used if ord(c) not in drawn} == set()


@pytest.mark.parametrize("weight", WEIGHTS)
def test_it_has_every_character_of_gb2312(fonts, weight):
    drawn = fonts[weight].getBestCmap()
    hanzi = [
        bytes((row, cell)).decode("gb2312")
        for row in range(0xB0, 0xF8)
        for cell in range(0xA1, 0xFF if row != 0xD7 else 0xFA)
    ]
    assert len(hanzi) == 6763
    assert all(ord(character) in drawn for character in hanzi)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_it_is_static_renamed_and_keeps_its_licence(fonts, weight, root):
    font = fonts[weight]
    assert "fvar" not in font
    names = {name.nameID: str(name) for name in font["name"].names}
    assert names[1] == "LedgerKit Sans SC"
    assert names[6] == f"LedgerKitSansSC-{weight}"
    for name_id in (1, 3, 4, 6):
        assert "Noto" not in names[name_id]
        assert "Source" not in names[name_id]
    assert "Adobe" in names[0]
    assert "SIL Open Font License" in names[13]
    assert font["OS/2"].usWeightClass == {"Regular": 400, "Bold": 700}[weight]
    licence = (root / "data" / "fonts" / "OFL.txt").read_text(encoding="utf-8")
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert "Copyright 2014-2021 Adobe" in licence


def test_the_width_table_belongs_to_the_font(fonts, root):
    table = json.loads((root / "data" / "fonts" / "advance_widths.json").read_text("utf-8"))
    for weight, font in fonts.items():
        metrics = font["hmtx"]
        advances = {chr(c): metrics[name][0] for c, name in font.getBestCmap().items()}
        assert table[weight.lower()] == {c: a for c, a in advances.items() if a != 1000}


PROBE = """
import sys, vl_convert
vl_convert.register_font_directory(sys.argv[1])
def png(words, family):
    position = {"type": "quantitative", "scale": None, "axis": None}
    return vl_convert.vegalite_to_png({
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json", "width": 300, "height": 40,
        "data": {"values": [{"x": 10, "y": 20, "t": words}]},
        "mark": {"type": "text", "align": "left", "font": family, "fontSize": 18},
        "encoding": {"x": {"field": "x", **position}, "y": {"field": "y", **position},
                     "text": {"field": "t", "type": "nominal"}}}, ppi=72)
own = "LedgerKit Sans SC"
title = "显存够不够"
missing = "\\ue000\\ue001\\ue002\\ue003\\ue004"
assert png(title, own) != png(missing, own), "the title is drawn as missing glyphs"
assert png("显", own) != png("存", own), "two characters look the same"
assert png(title, own) == png(title, own + ", Noto Sans CJK SC, sans-serif")
print("drawn")
"""


def test_chinese_is_drawn_and_not_replaced_by_boxes(root):
    """In a process of its own, which knows no font directory but ours and the system's."""
    found = subprocess.run(
        [sys.executable, "-c", PROBE, str(root / "data" / "fonts")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.strip() == "drawn", found.stderr


@pytest.mark.parametrize("language", ["zh", "en"])
def test_pdf_embeds_our_font_and_no_other(tmp_path, language):
    if shutil.which("pdffonts") is None:
        pytest.skip("no pdffonts on this machine: install poppler-utils")
    path = save_figure(
        memory_bars(samples.memory(*samples.CASES), language=language), tmp_path / "figure.pdf"
    )
    listed = subprocess.run(
        ["pdffonts", str(path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()[2:]
    names = sorted(line.split()[0].split("+")[1] for line in listed)
    assert names == ["LedgerKitSansSC-Bold-Identity-H", "LedgerKitSansSC-Regular-Identity-H"]
    assert all(line.split()[-5:-2] == ["yes", "yes", "yes"] for line in listed)
    words = subprocess.run(
        ["pdftotext", str(path), "-"], capture_output=True, text=True, check=True
    ).stdout
    assert text.get("memory.title", language) in words
