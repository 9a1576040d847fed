"""The table of techniques: complete, sourced, and with the signs that the transfers compute."""

from __future__ import annotations

import pytest

import ledgerkit as lk
from ledgerkit._techniques.catalogue import technique_rows
from ledgerkit._techniques.reference import REFERENCES, VERBS, reference_transfer, signs
from ledgerkit._techniques.registry import RECIPES

ROWS = {row["id"]: row for row in technique_rows()}


def test_every_technique_has_a_row_and_a_reference():
    assert set(ROWS) == set(RECIPES)
    baselines = {name for name, row in ROWS.items() if row["kind"] == "baseline"}
    assert baselines == {"mha", "dense_ffn"}
    assert set(REFERENCES) == set(ROWS) - baselines


def test_rows_are_complete_and_sourced():
    for row in ROWS.values():
        assert row["risk_source"].startswith("https://"), row["id"]
        for name in ("name", "cost", "risk", "needs"):
            assert row[f"{name}_zh"], row["id"]
            assert row[f"{name}_en"].isascii(), row["id"]
        assert row["can_apply"]
    frame = lk.techniques()
    assert frame.height == len(ROWS)
    order = frame["ledger"].to_list()
    assert order == sorted(order, key=("attention_kv", "ffn_mlp", "scheduling").index)


@pytest.mark.parametrize("technique", sorted(REFERENCES))
def test_the_signs_of_a_row_are_those_of_its_transfer(technique):
    found = signs(reference_transfer(technique))
    row = ROWS[technique]
    assert row["saves"] == [verb for verb in VERBS if verb in found and found[verb].saves]
    assert row["pays"] == [
        f"{verb}:{sign.ledger}" for verb, sign in found.items() if not sign.saves
    ]


def test_what_books_no_cost_is_flagged_and_has_a_stated_risk():
    flagged = {name for name in REFERENCES if not reference_transfer(name).books_a_cost}
    assert {"gqa", "sliding_window", "kv_quantization", "weight_int4"} <= flagged
    assert not flagged & {"mla", "dsa", "moe", "mtp", "tensor_parallelism", "prefix_cache"}
    for name in flagged:
        assert ROWS[name]["risk_en"] != "none"


def test_the_terms_of_the_article_are_all_there(shared):
    article = (shared / "seed" / "three_ledgers_article.zh.txt").read_text(encoding="utf-8")
    names = " ".join(row["name_zh"] + " " + row["name_en"] for row in ROWS.values()).lower()
    chapter = article[article.index("六、把常见技术") : article.index("七、用三本账")]
    listed = [line.strip() for line in chapter.splitlines()]
    terms = ("MHA", "MQA", "GQA", "MLA", "Sliding Window Attention", "Sparse Attention",
             "Hybrid Attention", "KV Cache Quantization", "Dense FFN", "MoE", "Shared Expert",
             "Expert Offload", "Expert Quantization", "Continuous Batching", "PagedAttention",
             "Prefix Cache", "RadixAttention", "Speculative Decoding", "MTP", "Chunked Prefill",
             "Expert Parallelism", "Tensor Parallelism", "Pipeline Parallelism")  # fmt: skip
    for term in terms:
        assert term in listed
        assert term.lower() in names
