"""Put states, charts, texts and the renderer into one HTML file."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import __version__
from ledgerkit._commands.explore.states import REFERENCE, Selection, compute
from ledgerkit._commands.explore.views import PRESETS, charts, geometry
from ledgerkit.charts import theme as themes
from ledgerkit.charts._files import renderer, replace_file
from ledgerkit.text import LANGUAGES, tables

if TYPE_CHECKING:
    from ledgerkit.text import Language

__all__ = ["page", "write_page"]

THEMES: Final = ("article", "dark")
_TOKENS: Final = ("background", "ink", "mute", "rule", "grid", "free", "alert")
_TERMS: Final = ("ledger.plain.attention_kv", "ledger.plain.ffn_mlp", "ledger.plain.scheduling")


def write_page(
    path: Path, *, language: Language = "en", selection: Selection | None = None
) -> Path:
    """Write the page.

    Parameters
    ----------
    path : pathlib.Path
        Ends in .html.
    language : {"zh", "en"}
        In which it opens; a reader can switch.
    selection : Selection, optional
        Models and devices it offers.

    Returns
    -------
    pathlib.Path
        Where it was written.
    """
    replace_file(path, page(language, selection or Selection()).encode())
    return path


def page(language: Language, selection: Selection) -> str:
    """Return the page as text; the same bytes for the same input.

    Parameters
    ----------
    language : {"zh", "en"}
        In which it opens.
    selection : Selection
        Models and devices it offers.

    Returns
    -------
    str
    """
    here = Path(__file__).parent
    data = compute(selection) | {
        "version": __version__,
        "language": language,
        "reference": REFERENCE,
        "texts": _texts(),
        "themes": {name: _colors(name) for name in THEMES},
        "shapes": themes.SHAPES,
        "families": themes.FAMILIES,
        "geometry": {preset: geometry(preset) for preset in PRESETS},
        "specs": {
            f"{code}|{theme}|{preset}": charts(code, theme, preset)
            for code, theme, preset in itertools.product(LANGUAGES, THEMES, PRESETS)
        },
    }
    # a string in the data must not end its element
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    parts = {
        "style": _style() + (here / "page.css").read_text(encoding="utf-8"),
        "renderer": renderer(),
        "script": (here / "page.js").read_text(encoding="utf-8"),
        "data": packed,
    }
    template = (here / "page.html").read_text(encoding="utf-8")
    pieces = re.split(r"\{(style|data|renderer|script)\}", template)
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def _texts() -> dict[str, dict[str, str]]:
    """All words of the page by language."""
    strings = {key: pair for table in tables().values() for key, pair in table.items()}
    wanted = [key for key in strings if key.startswith("page.")] + list(_TERMS)
    return {code: {key: strings[key][code] for key in wanted} for code in LANGUAGES}


def _colors(name: str) -> dict[str, Any]:
    theme = themes.resolve_theme(name)
    return {token: getattr(theme, token) for token in _TOKENS} | {"series": theme.series}


def _style() -> str:
    """Colours of both themes as CSS variables."""
    blocks = []
    for name in THEMES:
        tokens = _colors(name)
        rules = "; ".join(f"--{token}: {tokens[token]}" for token in _TOKENS)
        scheme = "dark" if name == "dark" else "light"
        blocks.append(f'[data-theme="{name}"] {{ color-scheme: {scheme}; {rules}; }}\n')
    return "".join(blocks)
