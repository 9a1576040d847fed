"""Both languages are complete, say the same fields and keep the typographic rules."""

from __future__ import annotations

import re
import string
import subprocess
import sys

import pytest

from ledgerkit import text

PAIRS = {key: pair for table in text.tables().values() for key, pair in table.items()}


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_keys_are_unique_over_all_tables():
    assert sum(len(table) for table in text.tables().values()) == len(PAIRS)


@pytest.mark.parametrize("key", sorted(PAIRS))
def test_both_languages_have_the_same_named_fields(key):
    pair = PAIRS[key]
    assert set(pair) == set(text.LANGUAGES)
    assert pair["zh"].strip()
    assert pair["en"].strip()
    assert fields(pair["zh"]) == fields(pair["en"])
    assert all(name.isidentifier() for name in fields(pair["zh"]))


@pytest.mark.parametrize("key", sorted(PAIRS))
def test_typography(key):
    zh, en = PAIRS[key]["zh"], PAIRS[key]["en"]
    # a CJK font draws these full width inside an English word
    assert not re.search("[\u2018\u2019\u201c\u201d\u2026\u00b7]", en)
    if not key.startswith("widget.language"):
        assert not re.search("[\u4e00-\u9fff]", en)
    # a full-width bracket or quote at the start of a line in a figure looks indented
    if not key.startswith("accuracy."):
        assert zh[0] not in "（\u201c"
    # runs of spaces collapse in SVG
    assert "  " not in zh
    assert "  " not in en


def test_the_terms_are_those_of_the_article(shared):
    article = (shared / "seed" / "three_ledgers_article.zh.txt").read_text(encoding="utf-8")
    for key in ("ledger.attention_kv", "ledger.ffn_mlp", "ledger.scheduling"):
        assert text.get(key, "zh").removesuffix("账") in article
    for verb in ("compute_less", "read_less", "store_less", "communicate_less", "schedule_better"):
        assert text.get(f"verb.saved.{verb}", "zh") + "？" in article
    for verdict in ("attention_kv", "weights", "mixed"):
        assert text.get(f"verdict.{verdict}", "zh") in article


def test_the_default_language_applies_where_none_is_given():
    assert text.get_language() == "en"
    text.set_language("zh")
    try:
        assert text.get("fits.yes") == "放得下"
        assert text.get("fits.yes", "en") == "fits"
    finally:
        text.set_language("en")
    assert text.get("fits.yes") == "fits"


def test_an_unknown_language_is_named():
    with pytest.raises(ValueError, match=r"'fr'.*'zh', 'en'"):
        text.set_language("fr")
    with pytest.raises(ValueError, match="unknown language"):
        text.get("fits.yes", "fr")


def test_a_missing_field_and_a_missing_key_are_errors():
    with pytest.raises(KeyError, match="amount"):
        text.get("fits.over", "en", size="1 GB")
    with pytest.raises(KeyError, match=r"no\.such\.key"):
        text.get("no.such.key")


def test_text_needs_nothing_but_the_standard_library():
    code = (
        "import sys; before = set(sys.modules); import ledgerkit.text.numbers as n;"
        "import ledgerkit.text as t; t.keys();"
        "new = {m.split('.')[0] for m in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names) - {'ledgerkit'}))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert found == "[]"
