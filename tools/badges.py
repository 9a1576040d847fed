"""Write the Binder badges of both READMEs: links of one tag, or the page that says how to open it.

::

    python tools/badges.py          # writes the block of README.md and README.zh.md, and the badges
    python tools/badges.py --check  # status 1 when a block is not what pyproject.toml says

``[project.urls] Source`` of ``pyproject.toml`` is the address of the repository. Where it is a
repository on github.com, the badges open Binder at the tag of the version; until one is named
there, they lead to ``docs/binder.md``. A link never names a branch: what a reader sees must not
change.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path
from typing import Final
from urllib.parse import quote

import ledgerkit as lk

ROOT: Final = Path(__file__).resolve().parents[1]
SAFE: Final = "/"
START, END = "<!-- binder -->", "<!-- /binder -->"
TARGETS: Final = {
    "README.md": {"lab": "lab/tree/notebooks/00_start_here.ipynb",
                  "voila": "voila/render/binder/explorer.ipynb"},
    "README.zh.md": {"lab": "lab/tree/notebooks/00_start_here.zh.ipynb",
                     "voila": "voila/render/binder/explorer.ipynb?language=zh"},
}  # fmt: skip
PAGES: Final = {"README.md": "docs/binder.md", "README.zh.md": "docs/binder.zh.md"}
WORDS: Final = {
    "README.md": {
        "lab": "Open the first notebook in Binder",
        "voila": "Open the Explorer in Binder",
    },
    "README.zh.md": {"lab": "在 Binder 中打开第一个笔记本", "voila": "在 Binder 中打开 Explorer"},
}
LABELS: Final = {"lab": "Binder notebook", "voila": "Binder Explorer"}
_GITHUB: Final = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")


def project(root: Path) -> tuple[str, str | None]:
    """Return the version and, where pyproject.toml names one, ``owner/name`` on github.com."""
    table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = table.get("urls", {}).get("Source")
    if source is None:
        return lk.__version__, None
    found = _GITHUB.fullmatch(source)
    if found is None:
        sys.exit(f"[project.urls] Source is not a repository on github.com: {source}")
    return lk.__version__, found[1]


def link(readme: str, target: str, version: str, repository: str | None) -> str:
    """Return where a badge leads."""
    if repository is None:
        return PAGES[readme]
    path = quote(TARGETS[readme][target], safe=SAFE)
    return f"https://mybinder.org/v2/gh/{repository}/v{version}?urlpath={path}"


def block(readme: str, version: str, repository: str | None) -> str:
    """Return the lines between the markers of a README."""
    badges = [
        f"[![{WORDS[readme][target]}](docs/img/binder_{target}.svg)]"
        f"({link(readme, target, version, repository)})"
        for target in LABELS
    ]
    return "\n".join([START, *badges, END])


def badge(label: str, version: str) -> str:
    """Return a badge as SVG: what it opens, and the tag."""
    left, right = 7 * len(label) + 16, 7 * len(version) + 23
    width = left + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="22" role="img" '
        f'aria-label="{label}, v{version}">'
        f'<rect width="{width}" height="22" rx="4" fill="#1f2937"/>'
        f'<path d="M{left} 0h{right - 4}a4 4 0 0 1 4 4v14a4 4 0 0 1-4 4h-{right - 4}z" '
        'fill="#0b6e8a"/>'
        '<g fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="12" '
        'text-anchor="middle">'
        f'<text x="{left / 2:g}" y="15.5" textLength="{left - 16}">{label}</text>'
        f'<text x="{left + right / 2:g}" y="15.5" textLength="{right - 16}">v{version}</text>'
        "</g></svg>\n"
    )


def pages(root: Path) -> dict[Path, str]:
    """Return every file that this command writes, with what it should hold."""
    version, repository = project(root)
    found = {
        root / "docs" / "img" / f"binder_{target}.svg": badge(LABELS[target], version)
        for target in LABELS
    }
    for readme in PAGES:
        text = (root / readme).read_text(encoding="utf-8")
        before, start, rest = text.partition(START)
        _, end, after = rest.partition(END)
        if not (start and end):
            sys.exit(f"{readme} has no {START} ... {END}")
        found[root / readme] = before + block(readme, version, repository) + after
    return found


def main() -> int:
    """Write or check the blocks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args().check
    stale = [
        path
        for path, text in pages(ROOT).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        if not check:
            path.write_text(pages(ROOT)[path], encoding="utf-8")
        sys.stdout.write(f"{'stale' if check else 'wrote'} {path.relative_to(ROOT)}\n")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
