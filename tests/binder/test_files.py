"""What binder/ promises: exact pins, nothing heavy, a build that stops at its first failure."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

HEAVY = {"dask", "distributed", "pyarrow", "torch", "transformers", "pytest", "playwright",
         "hypothesis", "mypy", "ruff", "pandas"}  # fmt: skip


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in listed)
    return {normal(name): version for name, version in (line.split("==") for line in listed)}


def test_every_requirement_is_pinned_as_in_the_constraints(root):
    ours, tested = pins(root / "binder" / "requirements.txt"), pins(root / "constraints.txt")
    assert {name: tested.get(name) for name in ours} == ours


def test_the_image_carries_what_ledgerkit_needs_and_nothing_heavy(root):
    ours = pins(root / "binder" / "requirements.txt")
    assert not HEAVY & set(ours)
    needed = re.search(r"^dependencies = \[(.*?)^\]", (root / "pyproject.toml").read_text(),
                       re.MULTILINE | re.DOTALL)  # fmt: skip
    assert needed
    names = {normal(name) for name in re.findall(r'"([A-Za-z0-9_-]+)', needed[1])}
    assert names <= set(ours)
    assert "voila" in ours


def test_the_build_script_stops_at_its_first_failure(root, tmp_path):
    script = root / "binder" / "postBuild"
    assert os.access(script, os.X_OK)
    (tmp_path / "python").write_text("#!/bin/sh\nexit 7\n")
    (tmp_path / "python").chmod(0o755)
    done = subprocess.run(
        [script], cwd=tmp_path, env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=False,
    )  # fmt: skip
    assert done.returncode == 7


@pytest.mark.parametrize("name", ["runtime.txt", "explorer.ipynb"])
def test_the_other_files_are_there(root, name):
    text = (root / "binder" / name).read_text(encoding="utf-8")
    if name == "runtime.txt":
        assert re.fullmatch(r"python-3\.1[1-3]\n", text)
    else:
        (cell,) = json.loads(text)["cells"]
        assert "lk.widgets.Explorer.from_link(" in "".join(cell["source"])
