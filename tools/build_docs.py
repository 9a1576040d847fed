"""Write the pages of docs/ that follow from the code: the API reference and the gallery of charts.

::

    python tools/build_docs.py          # writes docs/api.md, docs/gallery.md, docs/img/gallery/
    python tools/build_docs.py --check  # status 1 when a page is not what the code says

The reference is made from docstrings, whose examples the tests run. The gallery shows every chart
of ``ledgerkit.charts`` with the code under it: an entry of ``gallery_examples``, else the example
of the chart's docstring. The same code gives the same bytes.
"""

from __future__ import annotations

import argparse
import doctest
import inspect
import re
import sys
import tempfile
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import ledgerkit as lk

sys.path.insert(0, str(Path(__file__).parent))
from gallery_examples import EXAMPLES

ROOT: Final = Path(__file__).resolve().parents[1]
GALLERY: Final = (
    "Every chart of `ledgerkit.charts` and the code that draws it. All take `language=` "
    '("zh" or "en") and `theme=` ("article", "slide", "dark"); most take `preset="phone"`. '
    "`lk.save_figure(figure, path)` writes svg, png, pdf, html or json."
)
NO_CHARTS: Final = {"LedgerChart", "describe", "open_figure", "save_figure"}
_SECTION: Final = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
_LISTS: Final = {"Parameters", "Attributes", "Returns", "Raises", "Yields"}


# reference -----------------------------------------------------------------------------------


def reference() -> str:
    """Return the page of the API reference."""
    parts = [
        "# API reference",
        "Made from the docstrings, whose examples the tests run. `import ledgerkit as lk`.",
    ]
    modules = [name for name in lk.__all__ if inspect.ismodule(getattr(lk, name))]
    for name in lk.__all__:
        value = getattr(lk, name)
        if name not in modules and not isinstance(value, str):
            parts += _entry(f"lk.{name}", value, 2)
    for name in modules:
        module = getattr(lk, name)
        parts += [f"## lk.{name}", _paragraphs(inspect.getdoc(module) or "")]
        for member in getattr(module, "__all__", ()):
            parts += _entry(f"lk.{name}.{member}", getattr(module, member), 3)
    return "\n\n".join(parts) + "\n"


def _entry(name: str, value: Any, level: int) -> Iterator[str]:
    kind = "class " if inspect.isclass(value) else ""
    yield f"{'#' * level} {name}"
    if callable(value):
        yield f"```python\n{kind}{name}{_signature(value)}\n```"
    yield _markdown(_own_doc(value))
    described = [
        f"- `{field}`: {_paragraphs(info.description)}"
        for field, info in getattr(value, "model_fields", {}).items()
        if info.description
    ]
    if described:
        yield "**Fields**\n\n" + "\n".join(described)
    if inspect.isclass(value) and not issubclass(value, Exception):
        yield from _members(name, value, level + 1)


def _own_doc(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "") if hasattr(value, "__doc__") else ""


def _signature(value: Any) -> str:
    if hasattr(value, "model_fields"):
        named = (
            name if field.is_required() else f"{name}={field.default!r}"
            for name, field in value.model_fields.items()
        )
        return f"(*, {', '.join(named)})"
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    # annotations are strings here; an object's repr would differ from run to run
    plain = re.sub(r"(: |-> )(['\"])(.*?)\2(?=[,)=]| =|$)", r"\1\3", str(found))
    return re.sub(r"<[^<>]*>", "...", plain.replace("ledgerkit.", ""))


def _members(name: str, owner: type, level: int) -> Iterator[str]:
    for member, value in vars(owner).items():
        if member.startswith("_"):
            continue
        target = value.func if hasattr(value, "func") else value
        target = target.fget if isinstance(target, property) else target
        target = getattr(target, "__func__", target)
        if not inspect.isfunction(target) or not target.__doc__:
            continue
        called = "" if target is not value and not isinstance(value, classmethod | staticmethod) \
            else _signature(target)  # fmt: skip
        yield f"{'#' * level} {name}.{member}"
        if called:
            yield f"```python\n{member}{called}\n```"
        yield _markdown(inspect.cleandoc(target.__doc__))


def _markdown(docstring: str) -> str:
    """Turn a numpy docstring into Markdown."""
    pieces = _SECTION.split(docstring)
    parts = [_paragraphs(pieces[0])]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if title == "Examples":
            parts.append(f"```pycon\n{body.strip()}\n```")
        elif title in _LISTS:
            parts.append(f"**{title}**\n\n{_fields(body)}")
        else:
            parts.append(f"**{title}**\n\n{_paragraphs(body)}")
    return "\n\n".join(part for part in parts if part.strip())


def _paragraphs(text: str) -> str:
    text = re.sub(r":(?:func|class|mod|data|meth|attr):`~?([^`]+)`", r"`\1`", text.strip())
    return text.replace("``", "`")


def _fields(body: str) -> str:
    """Turn ``name : type`` with an indented text into a list."""
    items: list[str] = []
    for line in body.strip("\n").splitlines():
        if line and not line.startswith(" "):
            name, _, kind = line.partition(" : ")
            items.append(f"- `{name}`" + (f" ({_paragraphs(kind)})" if kind else ""))
        elif line.strip() and items:
            joined = ": " if not items[-1].endswith(".") and ": " not in items[-1] else " "
            items[-1] += joined + _paragraphs(line)
    return "\n".join(items)


# gallery -------------------------------------------------------------------------------------


def gallery(images: Path, link: str) -> str:
    """Draw every chart and return the page that shows them.

    ``images`` is the directory of the drawings, ``link`` how the page names it.
    """
    images.mkdir(parents=True, exist_ok=True)
    parts = [
        "# Gallery",
        GALLERY,
    ]
    for name in sorted(set(lk.charts.__all__) - NO_CHARTS):
        draw = getattr(lk.charts, name)
        code, figure = _example(name, draw)
        if figure is None:
            continue
        lk.save_figure(figure, images / f"{name}.svg", language="en")
        summary = _own_doc(draw).split("\n\n")[0].replace("\n", " ")
        alt = lk.charts.describe(figure).replace("[", "(").replace("]", ")")
        parts += [
            f"## {name}",
            _paragraphs(summary),
            f"![{alt}]({link}/{name}.svg)",
            f"```python\n{code}\n```",
        ]
    return "\n\n".join(parts) + "\n"


def _example(name: str, draw: Callable[..., Any]) -> tuple[str, Any]:
    """Return code that draws a chart, and what it draws."""
    if name in EXAMPLES:
        code = EXAMPLES[name].strip()
        scope: dict[str, Any] = {}
        exec(compile(code, f"<gallery {name}>", "exec"), scope)  # noqa: S102
        return code, scope["figure"]
    return _docstring_example(name, draw)


def _docstring_example(name: str, draw: Callable[..., Any]) -> tuple[str, Any]:
    drawn: list[Any] = []

    def recorded(*arguments: Any, **options: Any) -> Any:
        drawn.append(draw(*arguments, **options))
        return drawn[-1]

    module = inspect.getmodule(draw)
    scope = dict(vars(module)) if isinstance(module, types.ModuleType) else {}
    scope[name] = recorded
    examples = doctest.DocTestParser().get_examples(_own_doc(draw))
    sources = []
    setattr(lk.charts, name, recorded)
    try:
        for example in examples:
            exec(compile(example.source, f"<example of {name}>", "exec"), scope)  # noqa: S102
            sources.append(example.source)
            if drawn:
                break
    finally:
        setattr(lk.charts, name, draw)
    code = textwrap.dedent("".join(sources)).strip().replace(f" {name}(", f" lk.charts.{name}(")
    return code, drawn[-1] if drawn else None


# command -------------------------------------------------------------------------------------


def build(docs: Path) -> list[Path]:
    """Write all generated pages below a directory; return them."""
    docs.mkdir(parents=True, exist_ok=True)
    pages = {"api.md": reference(), "gallery.md": gallery(docs / "img" / "gallery", "img/gallery")}
    for name, text in pages.items():
        (docs / name).write_text(text, encoding="utf-8")
    return [*(docs / name for name in pages), *sorted((docs / "img" / "gallery").glob("*.svg"))]


def stale(docs: Path) -> list[str]:
    """Names of generated pages that are not what the code says."""
    with tempfile.TemporaryDirectory() as directory:
        fresh = Path(directory)
        made = {path.relative_to(fresh): path.read_bytes() for path in build(fresh)}
    kept = {path.relative_to(docs) for path in (docs / "img" / "gallery").glob("*.svg")}
    differing = [
        name
        for name, content in made.items()
        if not (docs / name).is_file() or (docs / name).read_bytes() != content
    ]
    return sorted(str(name) for name in {*differing, *(kept - set(made))})


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 when stale")
    if parser.parse_args().check:
        found = stale(ROOT / "docs")
        sys.stdout.writelines(f"not what the code says: docs/{name}\n" for name in found)
        return int(bool(found))
    build(ROOT / "docs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
