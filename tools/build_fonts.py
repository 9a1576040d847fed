# /// script
# dependencies = ["fonttools"]
# ///
"""Build the figure font: a static, renamed subset of Noto Sans CJK SC in two weights.

Figures must look the same on every machine, so ledgerkit ships the font it draws with. The source
is the pair of TTC files of the noto-cjk release 2.004 (https://github.com/notofonts/noto-cjk,
OFL-1.1), which most Linux distributions package::

    python tools/build_fonts.py NotoSansCJK-Regular.ttc NotoSansCJK-Bold.ttc

writes ``data/fonts/LedgerKitSansSC-{Regular,Bold}.otf`` and ``data/fonts/advance_widths.json``.
The same source files give the same bytes.

What differs from the source, and why:

* **Characters**: GB 2312 (all 6,763 Chinese characters and its symbols), Latin-1, Latin Extended-A,
  Greek, and the mathematical, arrow, box and shape symbols that figures use: 1.6 MB a weight
  instead of 16.
* **Name**: the licence asks modified versions not to use reserved names, so family, full and
  PostScript names are all ``LedgerKit Sans SC``.
* **Multiplication sign**: an ideograph's width in the source, which prints 8×H200 with holes. Here
  it has the width of a Latin capital, the outline scaled to match.
* **No hints, no vertical layout**: figures are rendered from outlines and horizontally.

``advance_widths.json`` holds the advances in 1/1000 em of every character that is not one em wide:
layout code measures text with it, without opening the font.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.misc.transform import Transform
from fontTools.pens.boundsPen import BoundsPen
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.pens.transformPen import TransformPen
from fontTools.ttLib import TTCollection, TTFont

FAMILY = "LedgerKit Sans SC"
SOURCE_FAMILY = "Noto Sans CJK SC"
OUTPUT = Path(__file__).resolve().parent.parent / "data" / "fonts"
WEIGHTS = ("Regular", "Bold")
TIMES_WIDTH = 640
TIMES_SCALE = 0.82
KEPT_NAME_IDS = (0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14)
EXTRA_RANGES = (
    (0x0020, 0x007E),
    (0x00A0, 0x00FF),
    (0x0100, 0x017F),
    (0x0370, 0x03FF),
    (0x2010, 0x2027),
    (0x2030, 0x203B),
    (0x2070, 0x209C),
    (0x20A0, 0x20BF),
    (0x2100, 0x214F),
    (0x2150, 0x218B),
    (0x2190, 0x21FF),
    (0x2200, 0x22FF),
    (0x2300, 0x230F),
    (0x2500, 0x257F),
    (0x25A0, 0x25FF),
    (0x2605, 0x2606),
    (0x2713, 0x2718),
    (0x3000, 0x301F),
    (0xFF01, 0xFF5E),
)


def characters() -> set[int]:
    """Code points of the subset: GB 2312 and the ranges above."""
    found = {code for first, last in EXTRA_RANGES for code in range(first, last + 1)}
    for row in range(0xA1, 0xF8):
        for cell in range(0xA1, 0xFF):
            try:
                found.add(ord(bytes((row, cell)).decode("gb2312")))
            except UnicodeDecodeError:  # a hole in the standard's table
                continue
    return found


def open_face(path: Path, weight: str) -> TTFont:
    """The Simplified Chinese face of a TTC, by name (the order of faces is not promised)."""
    for face in TTCollection(str(path), lazy=True).fonts:
        names = face["name"]
        if (names.getDebugName(1), names.getDebugName(2)) == (SOURCE_FAMILY, weight):
            return face
    message = f"{path.name} has no face {SOURCE_FAMILY} {weight}"
    raise SystemExit(message)


def narrow_times(font: TTFont) -> None:
    """Give the multiplication sign a text width, its outline scaled about its own centre."""
    glyph_name = font.getBestCmap()[0x00D7]
    glyphs = font.getGlyphSet()
    before, _ = font["hmtx"][glyph_name]
    sign = BoundsPen(glyphs)
    glyphs[glyph_name].draw(sign)
    middle = (sign.bounds[1] + sign.bounds[3]) / 2
    fitted = (
        Transform()
        .translate(TIMES_WIDTH / 2, middle)
        .scale(TIMES_SCALE)
        .translate(-before / 2, -middle)
    )
    top = font["CFF "].cff.topDictIndex[0]
    index = top.CharStrings.charStrings[glyph_name]
    private = top.FDArray[top.FDSelect[font.getGlyphID(glyph_name)]].Private
    pen = T2CharStringPen(TIMES_WIDTH - private.nominalWidthX, glyphs)
    glyphs[glyph_name].draw(TransformPen(pen, fitted))
    old = top.CharStrings.charStringsIndex.items[index]
    new = pen.getCharString(private=private, globalSubrs=old.globalSubrs)
    top.CharStrings.charStringsIndex.items[index] = new
    bounds = new.calcBounds(glyphs)
    font["hmtx"][glyph_name] = (TIMES_WIDTH, round(bounds[0]))


def rename(font: TTFont, weight: str) -> None:
    """Replace every name that a person or a program sees."""
    postscript = f"{FAMILY.replace(' ', '')}-{weight}"
    version = font["name"].getDebugName(5).split(";")[0]
    replaced = {
        1: FAMILY,
        2: weight,
        3: f"{version};{postscript}",
        4: FAMILY if weight == "Regular" else f"{FAMILY} {weight}",
        5: version,
        6: postscript,
        10: f"A subset of {SOURCE_FAMILY}, renamed, for the figures of ledgerkit.",
    }
    table = font["name"]
    table.names = [
        name
        for name in table.names
        if name.nameID in KEPT_NAME_IDS and name.platformID == 3 and name.langID == 0x409
    ]
    for name_id, value in replaced.items():
        table.setName(value, name_id, 3, 1, 0x409)
    cff = font["CFF "].cff
    cff.fontNames = [postscript]
    top = cff.topDictIndex[0]
    top.FamilyName, top.FullName, top.Weight = FAMILY, replaced[4], weight
    for part in top.FDArray:
        part.FontName = f"{postscript}-{part.FontName.rsplit('-', 1)[-1]}"


def build(source: Path, weight: str, target: Path) -> dict[str, int]:
    """Write one weight and return its advances that differ from one em."""
    font = open_face(source, weight)
    options = subset.Options(
        layout_features=["ccmp", "kern", "mark", "mkmk"],
        hinting=False,
        desubroutinize=False,
        name_IDs=["*"],
        name_languages=["*"],
        notdef_outline=True,
        glyph_names=False,
        drop_tables=["BASE", "VORG", "vhea", "vmtx", "DSIG"],
        recalc_timestamp=False,
        recalc_bounds=True,
    )
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters())
    subsetter.subset(font)
    narrow_times(font)
    rename(font, weight)
    font.recalcTimestamp = False
    font.save(str(target))
    built: Any = TTFont(str(target))
    metrics = built["hmtx"]
    return {
        chr(code): metrics[glyph][0]
        for code, glyph in sorted(built.getBestCmap().items())
        if metrics[glyph][0] != 1000
    }


def main(arguments: list[str] | None = None) -> int:
    """Build both weights from the two TTC files named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("regular", type=Path, help="NotoSansCJK-Regular.ttc")
    parser.add_argument("bold", type=Path, help="NotoSansCJK-Bold.ttc")
    given = parser.parse_args(arguments)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    advances: dict[str, dict[str, int]] = {}
    for weight, source in zip(WEIGHTS, (given.regular, given.bold), strict=True):
        target = OUTPUT / f"{FAMILY.replace(' ', '')}-{weight}.otf"
        advances[weight.lower()] = build(source, weight, target)
        sys.stdout.write(f"{target.name}: {target.stat().st_size:,} bytes\n")
    table = OUTPUT / "advance_widths.json"
    table.write_text(
        json.dumps(advances, ensure_ascii=True, separators=(",", ":"), sort_keys=True) + "\n",
        encoding="utf-8",
    )
    sys.stdout.write(f"{table.name}: {table.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
