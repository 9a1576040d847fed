"""Puts the objects of a PDF into one order.

The writer behind the exports numbers the fonts of a file in the order of a hash table, which
differs from run to run: the same figure comes out with the same objects in another order. Here they
are numbered in the order in which the document refers to them, and fonts, groups and graphic
states are sorted by name. Streams are not touched.
"""

from __future__ import annotations

import re
from typing import Final

from ledgerkit.errors import FigureError

__all__ = ["ordered_pdf"]

_REFERENCE: Final = re.compile(rb"(\d+) 0 R")
_NAMED: Final = re.compile(rb"(/(?:Font|XObject|ExtGState) <<\n)((?:\s*/\S+ \d+ 0 R\n)+)")
_TRAILER: Final = re.compile(rb"trailer\s*<<(.*?)>>\s*startxref\s*(\d+)\s*%%EOF\s*\Z", re.DOTALL)


def ordered_pdf(raw: bytes, *, title: str = "") -> bytes:
    """Write a PDF with its objects in the order of reference.

    Parameters
    ----------
    raw : bytes
        A file with one classic cross-reference table and no object streams.
    title : str
        Title of the document; none is set when empty.

    Returns
    -------
    bytes

    Raises
    ------
    FigureError
        If the file has another structure.
    """
    found = _TRAILER.search(raw)
    if found is None:
        raise FigureError("the exported PDF has no trailer that ledgerkit can read")
    objects = _objects(raw, int(found[2]))
    trailer = found[1]
    order: list[int] = []
    waiting = [int(number) for number in reversed(_REFERENCE.findall(trailer))]
    while waiting:
        number = waiting.pop()
        if number in order:
            continue
        order.append(number)
        head, _ = objects[number]
        waiting += [int(reference) for reference in reversed(_REFERENCE.findall(head))]
    renamed = {old: new for new, old in enumerate(order, start=1)}

    def rename(text: bytes) -> bytes:
        return _REFERENCE.sub(lambda match: b"%d 0 R" % renamed[int(match[1])], text)

    info = re.search(rb"/Info (\d+) 0 R", trailer)
    out = bytearray(raw[: raw.index(b"\n", raw.index(b"\n") + 1) + 1])
    offsets = []
    for old in order:
        head, stream = objects[old]
        head = rename(head)
        if title and info is not None and old == int(info[1]):
            words = b"\xfe\xff" + title.encode("utf-16-be")
            head = head.replace(b"<<", b"<<\n  /Title <" + words.hex().encode() + b">", 1)
        offsets.append(len(out))
        out += b"%d 0 obj\n" % renamed[old] + head + stream + b"\nendobj\n\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f\r\n" % (len(offsets) + 1)
    out += b"".join(b"%010d 00000 n\r\n" % offset for offset in offsets)
    out += b"trailer\n<<" + rename(trailer) + b">>\nstartxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


def _objects(raw: bytes, table: int) -> dict[int, tuple[bytes, bytes]]:
    """Objects by number: dictionary, and stream with its keywords (empty for most)."""
    lines = raw[table:].split(b"\n")
    if lines[0].strip() != b"xref" or not lines[1].startswith(b"0 "):
        raise FigureError("the exported PDF has no cross-reference table that ledgerkit can read")
    count = int(lines[1].split()[1])
    offsets = {
        number: int(line.split()[0])
        for number, line in enumerate(lines[2 : 2 + count])
        if line.split()[2] == b"n"
    }
    ends = sorted([*offsets.values(), table])
    objects: dict[int, tuple[bytes, bytes]] = {}
    for number, offset in offsets.items():
        whole = raw[offset : ends[ends.index(offset) + 1]]
        body = whole[whole.index(b"obj") + 3 : whole.rindex(b"endobj")].strip(b"\r\n")
        cut = body.find(b"\nstream")
        head, stream = (body, b"") if cut < 0 else (body[:cut], body[cut:])
        objects[number] = (_NAMED.sub(_sorted_fonts, head), stream)
    return objects


def _sorted_fonts(match: re.Match[bytes]) -> bytes:
    return match[1] + b"".join(sorted(match[2].splitlines(keepends=True)))
