"""What `doctor` finds beyond missing packages."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from ledgerkit import text
from ledgerkit._commands import doctor


def say(key: str, **fields: object) -> str:
    return text.get(f"command.doctor.{key}", "en", **fields)


def test_a_version_below_the_needed_one_is_named(monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ("altair",))
    monkeypatch.setattr(doctor, "_needed", lambda: {"altair": SpecifierSet(">=99.0")})
    (finding,) = doctor._packages(say)
    assert "altair>=99.0 is needed" in finding.value
    assert finding.fix == "pip install 'altair>=99.0'"


def test_what_is_needed_is_what_the_distribution_declares():
    needed = doctor._needed()
    assert set(doctor.PACKAGES) <= set(needed)
    assert "torch" not in needed, "an extra is not needed"


@pytest.mark.parametrize(("renderer", "fine"), [("default", True), ("mimetype", False)])
def test_a_renderer_that_stays_blank_is_named(renderer, fine):
    import altair as alt

    with alt.renderers.enable(renderer):
        finding = doctor._display(say)
    assert (finding.fix is None) is fine
    if not fine:
        assert finding.value == "mimetype"
        assert 'alt.renderers.enable("default")' in finding.fix


def test_a_machine_without_chinese_fonts_is_told_and_not_failed(monkeypatch, tmp_path):
    asker = tmp_path / "fc-list"
    asker.write_text("#!/bin/sh\n")
    asker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = doctor._system_font(say)
    assert finding.fix is None
    assert finding.value.startswith("none: squares")
    asker.unlink()
    assert doctor._system_font(say).value.startswith("cannot be asked here")
