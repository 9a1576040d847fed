"""A reading as a document of headings, paragraphs, tables and code, in Markdown and HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

STYLE = """\
body{max-width:860px;margin:2rem auto;padding:0 1rem;color:#1B1F27;
font:15px/1.6 "Noto Sans CJK SC","PingFang SC","Microsoft YaHei",system-ui,sans-serif}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;width:100%;margin:.8rem 0;font-size:13px}
th,td{border-bottom:1px solid #E2E5EA;padding:.35rem .5rem;text-align:left;vertical-align:top}
td:last-child{overflow-wrap:anywhere}
th{color:#555C69;font-weight:400;white-space:nowrap}
pre{background:#ECEEF2;padding:.8rem;overflow-x:auto;font-size:13px}
div.table{overflow-x:auto}"""


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Text, of which ``lead`` is set in bold."""

    text: str
    lead: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of text under a head."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Code:
    """Lines to paste."""

    text: str
    syntax: str = "python"


Block = Heading | Paragraph | Table | Code


def markdown(blocks: Sequence[Block]) -> str:
    r"""Set blocks as Markdown.

    Examples
    --------
    >>> print(markdown([Heading("Title", 1), Table(("a", "b"), (("1", "x|y"),))]))
    # Title
    <BLANKLINE>
    | a | b |
    | --- | --- |
    | 1 | x\|y |
    <BLANKLINE>
    """
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(text=text, level=level):
            return f"{'#' * level} {text}"
        case Paragraph(text=text, lead=lead):
            return f"**{lead}** {text}" if lead else text
        case Code(text=text, syntax=syntax):
            return f"```{syntax}\n{text.rstrip()}\n```"
        case Table(head=head, rows=rows):
            lines = [head, ("---",) * len(head), *rows]
            return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def page(blocks: Sequence[Block], language: str, title: str) -> str:
    """Set blocks as one HTML page without outside resources.

    Examples
    --------
    >>> "<td>1 &lt; 2</td>" in page([Table(("a",), (("1 < 2",),))], "en", "t")
    True
    """
    tag = "zh-CN" if language == "zh" else language
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="{tag}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text=text, level=level):
            return f"<h{level}>{html.escape(text)}</h{level}>"
        case Paragraph(text=text, lead=lead):
            strong = f"<strong>{html.escape(lead)}</strong> " if lead else ""
            return f"<p>{strong}{html.escape(text)}</p>"
        case Code(text=text):
            return f"<pre><code>{html.escape(text.rstrip())}</code></pre>"
        case Table(head=head, rows=rows):
            top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
            lines = "\n".join(
                "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
                for row in rows
            )
            return (
                f'<div class="table"><table>\n<thead><tr>{top}</tr></thead>\n'
                f"<tbody>\n{lines}\n</tbody>\n</table></div>"
            )
