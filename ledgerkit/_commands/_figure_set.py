"""What surrounds a set of written figures: other themes, alternative texts, the manifest."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import __version__
from ledgerkit._data import data_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["FIGURES", "MANIFEST", "draw_themes", "write_captions", "write_manifest"]

MANIFEST: Final = "manifest.json"
CAPTIONS: Final = "captions.{language}.md"
FIGURES: Final = (".svg", ".png", ".pdf", ".json", ".html")
"""Suffixes of what the manifest lists as figures."""
PACKAGES: Final = ("altair", "numba", "numpy", "polars", "vl-convert-python")
"""What the pixels and numbers depend on."""


def _specifications(directory: Path) -> list[Path]:
    """The json files of a directory that are figures of ours, as first drawn."""
    found = []
    for path in sorted(directory.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        facts = (
            content.get("usermeta", {}).get("ledgerkit", {}) if isinstance(content, dict) else {}
        )
        if facts.get("data"):
            found.append(path)
    return found


def draw_themes(directory: Path, themes: Sequence[str]) -> list[Path]:
    """Open every figure of a directory again and write it in other themes.

    Parameters
    ----------
    directory : pathlib.Path
        Holds figures that ``save_figure`` wrote as .json.
    themes : sequence of str
        Names of themes; ``name.en.json`` gives ``name.en.dark.svg``, .png and .pdf.

    Returns
    -------
    list of pathlib.Path
        What was written.
    """
    from ledgerkit.charts import open_figure, save_figure

    written = []
    for path in _specifications(directory):
        for theme in themes:
            chart = open_figure(path, theme=theme)
            for suffix in (".svg", ".png", ".pdf"):
                target = path.with_name(f"{path.stem}.{theme}{suffix}")
                written.append(save_figure(chart, target))
    return written


def write_captions(directory: Path) -> list[Path]:
    """Write captions and alternative texts, made from the data, one page per language.

    Parameters
    ----------
    directory : pathlib.Path
        Holds figures that ``save_figure`` wrote as .json.

    Returns
    -------
    list of pathlib.Path
        What was written.
    """
    pages: dict[str, list[str]] = {}
    for path in _specifications(directory):
        spec = json.loads(path.read_text(encoding="utf-8"))
        facts = spec["usermeta"]["ledgerkit"]
        caption = " ".join(
            text for name in ("title", "operating_point", "finding") if (text := facts.get(name))
        )
        pages.setdefault(facts["options"]["language"], []).append(
            f"## {path.stem}\n\n{caption}\n\n> {spec.get('description', '')}\n"
        )
    written = []
    for language, sections in sorted(pages.items()):
        target = directory / CAPTIONS.format(language=language)
        target.write_text("\n".join(sections), encoding="utf-8")
        written.append(target)
    return written


def write_manifest(
    directory: Path, files: Iterable[Path], *, sources: Iterable[Path], options: Mapping[str, Any]
) -> Path:
    """Write down what the figures were made from, with what, and their checksums.

    It holds no time and no place: the same inputs give the same bytes.

    Parameters
    ----------
    directory : pathlib.Path
        Where the figures are.
    files : iterable of pathlib.Path
        The figures and captions, below ``directory``.
    sources : iterable of pathlib.Path
        The notebooks that were executed.
    options : mapping
        What the command was asked for.

    Returns
    -------
    pathlib.Path
    """
    content = {
        "made_with": {
            "ledgerkit": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in PACKAGES},
        },
        "options": dict(options),
        "inputs": {
            **{f"notebooks/{path.name}": _digest(path) for path in sorted(sources)},
            **{f"data/{name}": digest for name, digest in _data_digests()},
        },
        "files": {
            path.relative_to(directory).as_posix(): {
                "sha256": _digest(path),
                "bytes": path.stat().st_size,
            }
            for path in sorted(set(files))
        },
    }
    target = directory / MANIFEST
    target.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return target


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _data_digests() -> list[tuple[str, str]]:
    """Checksums of the tables and fonts, and one over all model configs."""
    directory = data_directory()
    found = [(path.name, _digest(path)) for path in sorted(directory.glob("*.csv"))]
    found += [
        (f"fonts/{path.name}", _digest(path))
        for path in sorted((directory / "fonts").glob("*.otf"))
    ]
    models = hashlib.sha256()
    for path in sorted((directory / "models").glob("*.json")):
        models.update(f"{path.name}\0{_digest(path)}\0".encode())
    return [*found, ("models", models.hexdigest())]
