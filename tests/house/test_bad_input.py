"""What a hostile user typed: each snippet ends in a right result, a note or a full error."""

from __future__ import annotations

import ledgerkit as lk

MODEL, DEVICE = "llama-3.1-8b", "h100-sxm-80gb"
SHORT = {"prompt_tokens": 8, "output_tokens": 8}


# notes -----------------------------------------------------------------------------------------


def test_sequences_above_the_engine_s_default_are_told():
    crowded = lk.ledger(MODEL, DEVICE, workload=SHORT | {"concurrency": 5000})
    assert any("runs 1024 sequences" in note and "5000" in note for note in crowded.notes)
    calm = crowded.at(lk.Workload(**SHORT, concurrency=1024))
    assert not calm.notes
    ranks = lk.ledger(MODEL, DEVICE, {"dp_attention": 8}, SHORT | {"concurrency": 8192})
    assert not ranks.notes
    trail = lk.compare([calm], trail=("concurrency", [1, 1025]))
    assert any("runs 1024 sequences" in note and "1025" in note for note in trail.notes)
    assert not lk.compare([calm], trail=("concurrency", [1, 512])).notes
