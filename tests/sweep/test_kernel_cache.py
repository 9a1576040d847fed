"""Compiled kernels: an edit in any kernel file is seen, and read-only installs work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledgerkit.kernels import _jit

TWO_FILES = {
    "__init__.py": "",
    "helper.py": (
        "from small.kernels._jit import kernel\n\n"
        "@kernel\ndef twice(x: float) -> float:\n    return 2.0 * x\n"
    ),
    "main.py": (
        "from small.kernels._jit import kernel\nfrom small.kernels.helper import twice\n\n"
        "@kernel\ndef run(x: float) -> float:\n    return twice(x) + 1.0\n"
    ),
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a kernel that calls a helper of another file."""
    kernels = tmp_path / "small" / "kernels"
    kernels.mkdir(parents=True)
    (tmp_path / "small" / "__init__.py").write_text("")
    for name, text in TWO_FILES.items():
        (kernels / name).write_text(text)
    shutil.copy(_jit.__file__, kernels / "_jit.py")
    return tmp_path


def run(package: Path, **environment: str) -> str:
    code = (
        "from small.kernels.main import run; "
        "print(run(10.0), sum(run.compiled.stats.cache_hits.values()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(package), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_edit_in_a_helper_file_is_never_missed(package: Path, tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(package, **cache) == "21.0 0"
    assert run(package, **cache) == "21.0 1"
    helper = package / "small" / "kernels" / "helper.py"
    helper.write_text(helper.read_text().replace("2.0", "20.0"))
    assert run(package, **cache) == "201.0 0"


def test_every_kernel_file_counts(tmp_path: Path) -> None:
    copy = tmp_path / "kernels"
    shutil.copytree(Path(_jit.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = _jit.sources_digest(copy)
    assert before == _jit.sources_digest()
    for path in sorted(copy.glob("*.py")):
        text = path.read_text()
        path.write_text(text + "\n# changed\n")
        assert _jit.sources_digest(copy) != before, path.name
        path.write_text(text)
    assert _jit.sources_digest(copy) == before


def test_without_a_writable_home_the_cache_is_among_the_temporary_files(
    package: Path, tmp_path: Path
) -> None:
    locked = tmp_path / "a-file"
    locked.write_text("no directory can be made below this")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    places = {"NUMBA_CACHE_DIR": "", "HOME": str(locked), "XDG_CACHE_HOME": str(locked),
              "LOCALAPPDATA": str(locked), "TMPDIR": str(temporary)}  # fmt: skip
    assert run(package, **places) == "21.0 0"
    assert list(temporary.rglob("*.nbi"))
    assert run(package, **places) == "21.0 1"


def test_with_nowhere_to_write_kernels_still_run(package: Path, tmp_path: Path) -> None:
    locked = tmp_path / "a-file"
    locked.write_text("no directory can be made below this")
    assert run(package, NUMBA_CACHE_DIR=str(locked / "below")) == "21.0 0"
