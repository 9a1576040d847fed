"""Every note that a result can carry is said in Chinese too."""

from __future__ import annotations

import re

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import LedgerError
from ledgerkit.text.notes import note_in

WORK = lk.Workload(prompt_tokens=4096, output_tokens=256, concurrency=8)
MODELS = ("deepseek-v3", "llama-3.1-8b", "qwen3-30b-a3b", "gemma-3-27b-it", "deepseek-v3.2",
          "qwen3-next-80b-a3b-instruct")  # fmt: skip
SHORT = {"prompt_tokens": 8, "output_tokens": 8}
LAYOUTS = (lk.Deployment(tp=8), lk.Deployment(dp_attention=8, ep=8))
ENGLISH = re.compile(r"(?:\b[a-z]{2,}\b[ ,]+){4}")


def in_chinese(note: str) -> bool:
    said = note_in(note, "zh")
    return said != note and not ENGLISH.search(said)


@pytest.mark.parametrize("technique", lk.techniques()["id"].to_list())
def test_notes_of_transfers(technique):
    for model in MODELS:
        for layout in LAYOUTS:
            for action in ("apply", "remove"):
                try:
                    found = lk.transfer(
                        technique, model=model, hardware="h200-sxm-141gb", deployment=layout,
                        workload=WORK, action=action,
                    )  # fmt: skip
                except LedgerError:
                    continue
                assert [note for note in found.notes if not in_chinese(note)] == []


def test_notes_of_ledgers_and_comparisons():
    kinds = {"weights": "fp8_block128", "kv_dtype": "fp8"}
    notes = {
        note
        for device in ("v100-sxm2-32gb", "a100-sxm-80gb", "h100-sxm-80gb")
        for model, layout in (("llama-3.1-8b", kinds), ("gpt-oss-20b", {}), ("qwen3-8b", {}))
        for note in lk.ledger(model, device, lk.Deployment(**layout), WORK).notes
    }
    long = lk.Workload(prompt_tokens=1024, output_tokens=256, cached_tokens=512)
    point = {"model": "gpt-oss-20b", "hardware": "h100-sxm-80gb", "workload": long}
    notes |= set(lk.compare([point], trail=("prompt_tokens", [256, 131_072])).notes)
    crowded = {"concurrency": 5000, **SHORT}
    books = lk.ledger("llama-3.1-8b", "h100-sxm-80gb", workload=crowded)
    notes |= {*books.notes, *lk.compare([books]).notes}
    assert len(notes) > 7
    assert [note for note in notes if not in_chinese(note)] == []


def test_notes_of_runs():
    stream = lk.Arrivals.poisson(0.5, requests=10, prompt_tokens=512, output_tokens=16)
    notes = {
        note
        for model, layout in (
            ("qwen3-30b-a3b", lk.Deployment(engine="ktransformers")),
            ("llama-3.1-8b", lk.Deployment(engine="sglang")),
            ("qwen3-next-80b-a3b-instruct", lk.Deployment(tp=4)),
        )
        for note in lk.simulate(model, "h200-sxm-141gb", layout, stream).notes
    }
    busy = lk.Arrivals.poisson(500.0, requests=400, prompt_tokens=4096, output_tokens=64)
    point = ("llama-3.1-8b", "h100-sxm-80gb")
    notes |= set(lk.simulate(*point, arrivals=busy, overload="run", draft_tokens=2).notes)
    rows = {"arrival_s": [0.0, 0.1], "prompt_tokens": [512, 200_000], "output_tokens": [8, 8]}
    notes |= set(lk.simulate(*point, arrivals=pl.DataFrame(rows)).notes)
    assert len(notes) >= 6
    assert [note for note in notes if not in_chinese(note)] == []


def test_english_stays():
    assert note_in("anything", "en") == "anything"
