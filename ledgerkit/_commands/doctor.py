"""Check what usually breaks: packages, widget front ends, renderer, fonts, kernel cache."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerkit import __version__, text
from ledgerkit.errors import LedgerError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from packaging.specifiers import SpecifierSet

PACKAGES = (
    "altair",
    "anywidget",
    "ipywidgets",
    "jupyterlab",
    "nbclient",
    "numba",
    "numpy",
    "polars",
    "pydantic",
    "vl-convert-python",
)
FRONT_ENDS = {
    "jupyterlab_widgets": "@jupyter-widgets/jupyterlab-manager",
    "anywidget": "anywidget",
}
"""Python package → the Lab extension that it ships and that draws its widgets."""

FONTS = ("LedgerKitSansSC-Regular.otf", "LedgerKitSansSC-Bold.otf")


@dataclass(frozen=True)
class Finding:
    """One line of the report; ``fix`` is None when nothing has to be done."""

    name: str
    value: str
    fix: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``doctor``: none of its own."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Print all findings; status 1 when one of them needs something done."""

    def say(key: str, **fields: object) -> str:
        return text.get(f"command.doctor.{key}", arguments.language, **fields)

    print(f"ledgerkit {__version__} · Python {platform.python_version()} · {platform.platform()}")
    failed = 0
    for finding in examine(say):
        print(f"  {'x' if finding.fix else '✓'} {finding.name}: {finding.value}")
        if finding.fix:
            failed += 1
            print(f"    {say('fix', fix=finding.fix)}")
    print(say("failed", count=failed) if failed else say("all_well"))
    return 1 if failed else 0


def examine(say: Callable[..., str]) -> Iterator[Finding]:
    """Run every check in the order in which one depends on another."""
    yield from _packages(say)
    yield from _front_ends(say)
    yield _renderer(say)
    yield _display(say)
    yield _fonts(say)
    yield _system_font(say)
    yield _cache(say)
    yield Finding(say("threads"), say("threads_ok", count=os.cpu_count() or 1))


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _needed() -> dict[str, SpecifierSet]:
    """Versions that this distribution asks for; empty where it runs from files alone."""
    from packaging.requirements import Requirement

    try:
        lines = metadata.requires("ledgerkit-llm") or ()
    except metadata.PackageNotFoundError:
        return {}
    requirements = [Requirement(line) for line in lines]
    return {one.name: one.specifier for one in requirements if one.marker is None}


def _packages(say: Callable[..., str]) -> Iterator[Finding]:
    needed = _needed()
    for package in PACKAGES:
        version = _version(package)
        name = say("package", name=package)
        if version is None:
            yield Finding(name, say("missing"), say("install", name=package))
        elif package in needed and not needed[package].contains(version, prereleases=True):
            wanted = f"{package}{needed[package]}"
            value = say("too_old", version=version, wanted=wanted)
            yield Finding(name, value, say("install", name=f"'{wanted}'"))
        else:
            yield Finding(name, version)


def _front_ends(say: Callable[..., str]) -> Iterator[Finding]:
    """Compare the extension that JupyterLab finds first with the one of the kernel's package."""
    from jupyter_core.paths import jupyter_path

    for distribution, extension in FRONT_ENDS.items():
        name = say("frontend", name=distribution)
        if (version := _version(distribution)) is None:
            yield Finding(name, say("missing"), say("install", name=distribution))
            continue
        fix = say("frontend_fix", name=distribution, version=version)
        manifest = f"labextensions/{extension}/package.json"
        found = (Path(path).parent / manifest for path in jupyter_path("labextensions"))
        frontend = next((_manifest_version(path) for path in found if path.is_file()), None)
        own = next(
            (
                _manifest_version(Path(str(file.locate())))
                for file in metadata.files(distribution) or ()
                if file.as_posix().endswith(manifest)
            ),
            frontend,
        )
        if frontend is None:
            yield Finding(name, say("frontend_missing"), fix)
        elif frontend == own:
            yield Finding(name, f"{extension} {frontend}")
        else:
            yield Finding(name, say("frontend_other", frontend=frontend, kernel=own), fix)


def _manifest_version(path: Path) -> str:
    return str(json.loads(path.read_text(encoding="utf-8"))["version"])


def _renderer(say: Callable[..., str]) -> Finding:
    import vl_convert

    started = time.perf_counter()
    spec = {"data": {"values": [{"x": 1}]}, "mark": "point", "encoding": {"x": {"field": "x"}}}
    try:
        svg = vl_convert.vegalite_to_svg(json.dumps(spec))
    except ValueError as error:
        return Finding(say("renderer"), str(error), say("install", name="vl-convert-python"))
    if not svg.startswith("<svg"):
        return Finding(say("renderer"), svg[:60], say("install", name="vl-convert-python"))
    seconds = f"{time.perf_counter() - started:.1f}"
    return Finding(say("renderer"), say("renderer_ok", seconds=seconds))


def _display(say: Callable[..., str]) -> Finding:
    """How charts show themselves in a notebook."""
    import altair as alt

    active = alt.renderers.active
    if active in ("default", "svg", "png", "jupyter"):
        return Finding(say("display"), say("display_ok", name=active))
    # JupyterLab has no viewer for the current Vega-Lite; html fetches its scripts
    return Finding(say("display"), active, say("display_fix"))


def _system_font(say: Callable[..., str]) -> Finding:
    """Whether a browser on this machine has Chinese characters; only Linux can be asked."""
    import shutil
    import subprocess

    asker = shutil.which("fc-list")
    if asker is None:
        return Finding(say("screen_font"), say("screen_font_unknown"))
    listed = subprocess.run(  # noqa: S603  # a fixed command
        [asker, ":lang=zh-cn", "family"], capture_output=True, text=True, check=False
    )
    families = sorted(line.split(",")[0] for line in listed.stdout.splitlines() if line)
    if not families:
        # figures embed their own font: only words on this machine's screen are affected
        return Finding(say("screen_font"), say("screen_font_none"))
    return Finding(say("screen_font"), families[0])


def _fonts(say: Callable[..., str]) -> Finding:
    from ledgerkit._data import data_path

    try:
        missing = [font for font in FONTS if not data_path("fonts", font).is_file()]
    except LedgerError as error:
        return Finding(say("fonts"), error.what, say("fonts_fix"))
    if missing:
        return Finding(say("fonts"), f"{say('missing')}: {', '.join(missing)}", say("fonts_fix"))
    return Finding(say("fonts"), ", ".join(FONTS))


def _cache(say: Callable[..., str]) -> Finding:
    from ledgerkit.kernels._jit import cache_directory

    directory = cache_directory()
    if directory is None:
        return Finding(say("cache"), say("cache_none"), say("cache_fix"))
    return Finding(say("cache"), str(directory))
