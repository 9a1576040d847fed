"""What is tracked: no machine's paths, no registry's addresses, clean notebooks, small files."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 450

# written so that this file does not match itself
MACHINE_PATH = re.compile(r"(?<![\w.<])/(?:wor[k]|roo[t]|hom[e]|User[s])/\w")
REGISTRY = re.compile(r"https?://[\w.-]*(?:pyp[i]|pythonhoste[d]|npmj[s]|debia[n])[\w.-]*/")


def _tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nothing is tracked here")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def _texts() -> dict[str, str]:
    texts = {}
    for path in _tracked():
        content = path.read_bytes()
        if b"\0" not in content:
            texts[path.relative_to(ROOT).as_posix()] = content.decode("utf-8")
    assert texts
    return texts


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["machine path", "registry"])
def test_no_tracked_text_names_a_machine(pattern: re.Pattern[str]) -> None:
    hits = [
        f"{name}:{number}"
        for name, text in _texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert hits == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see /wor" + "k/main/x.py", True),
        ("see /hom" + "e/ada/x.py", True),
        ("a read/write ratio", False),
        ("docs/wor" + "k/notes", False),
    ],
)
def test_machine_paths_are_recognised(text: str, *, found: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is found


def test_notebooks_are_stored_without_outputs() -> None:
    for path in _tracked():
        if path.suffix != ".ipynb":
            continue
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert code, path.name
        assert all(cell["outputs"] == [] for cell in code), path.name
        assert all(cell["execution_count"] is None for cell in code), path.name


def test_python_files_stay_small() -> None:
    lengths = {
        name: text.count("\n")
        for name, text in _texts().items()
        if name.startswith("ledgerkit/") and name.endswith(".py")
    }
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_readmes_name_the_two_commands() -> None:
    for name in ("README.md", "README.zh.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "make figures" in text
        assert "make test" in text
        assert "ledgerkit-llm" in text


@pytest.mark.parametrize("target", ["figures", "test", "lab", "lint", "types", "layers", "ci"])
def test_make_targets_resolve(target: str) -> None:
    subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_links_in_documents_lead_somewhere() -> None:
    broken = [
        f"{name}: {target}"
        for name, text in _texts().items()
        if name.endswith(".md")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        if not (ROOT / name).parent.joinpath(target).exists()
    ]
    assert broken == []


def test_constraints_pin_exactly_and_cover_what_we_require() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split(";")[0].strip() for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin) for pin in pins)
    pinned = {re.sub(r"[-_.]+", "-", pin.split("==")[0]).lower() for pin in pins}

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    names = {re.split(r"[\s\[<>=!~;]", one)[0].lower().replace("_", "-") for one in required}
    assert names <= pinned


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_python_of_the_readme_runs(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), {})  # noqa: S102
