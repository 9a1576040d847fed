"""The public names, whatever was imported before them and in whichever order."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest

import ledgerkit as lk

HEAVY = (
    "altair",
    "anywidget",
    "dask",
    "ipywidgets",
    "jsonschema",
    "narwhals",
    "numba",
    "numpy",
    "polars",
    "torch",
    "traitlets",
    "transformers",
    "vl_convert",
)

MODULES = {"charts", "errors", "loadtest", "widgets"}

IMPORT_ALL_THEN_LOOK = """
import importlib, json, pkgutil, random, sys, types
import ledgerkit as lk

names = [m.name for m in pkgutil.walk_packages(lk.__path__, "ledgerkit.")]
random.Random(int(sys.argv[1])).shuffle(names)
for name in names:
    importlib.import_module(name)
json.dump(
    {name: isinstance(getattr(lk, name), types.ModuleType) for name in lk.__all__}, sys.stdout
)
"""


def _python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_no_heavy_library() -> None:
    loaded = set(_python("import ledgerkit, sys; print(*sys.modules)").split())
    assert loaded.isdisjoint(HEAVY)


def test_listing_and_typing_names_loads_nothing() -> None:
    code = "import sys, ledgerkit; dir(ledgerkit); print(*sys.modules)"
    assert set(_python(code).split()).isdisjoint(HEAVY)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_names_win_over_submodules_in_any_import_order(seed: str) -> None:
    is_module = json.loads(_python(IMPORT_ALL_THEN_LOOK, seed))
    assert {name for name, module in is_module.items() if module} == MODULES & set(lk.__all__)


def test_every_public_name_resolves_and_is_documented() -> None:
    assert list(lk.__all__) == sorted(lk.__all__)
    for name in lk.__all__:
        value = getattr(lk, name)
        if not isinstance(value, str):
            assert value.__doc__, name


def test_the_namespace_is_exactly_the_list() -> None:
    assert dir(lk) == sorted(lk.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ledgers'"):
        lk.ledgers  # noqa: B018


def test_a_name_is_loaded_once() -> None:
    assert lk.Deployment is lk.Deployment
    assert isinstance(lk.errors, types.ModuleType)


def test_version_is_that_of_the_distribution() -> None:
    assert metadata.version("ledgerkit-llm") == lk.__version__


def test_type_checkers_see_the_same_homes() -> None:
    tree = ast.parse(Path(lk.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lazy = lk._HOMES | dict.fromkeys(lk._SUBPACKAGES, "ledgerkit")
    assert seen == lazy
    assert set(lk.__all__) == set(lazy) | {"__version__"}
