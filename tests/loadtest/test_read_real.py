"""Files that other tools wrote: the planned lines were run against a llama.cpp server.

SmolLM2-135M on CPU, prompts of 128 tokens, 32 generated. Texts, telemetry and the tools' copies of
their own options were cut out of the files, no number was changed.
"""

from pathlib import Path

import pytest

import ledgerkit as lk

FILES = Path(__file__).parent / "files"
TOOLS = {
    "aiperf_0.13.0.json": ("aiperf", 2, 4),
    "aiperf_0.13.0_records.jsonl": ("aiperf", 2, 4),
    "guidellm_0.8.1.json": ("guidellm", 2, 4),
    "sglang_0.5.23.jsonl": ("sglang.bench_serving", 1, 2),
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_real_file_is_the_cell_that_was_planned(name):
    tool, concurrency, requests = TOOLS[name]
    found = lk.loadtest.read(FILES / name)
    assert found.provenance["tool"] == tool
    row = found.cells.row(0, named=True)
    assert row["cell"] == f"128 x {concurrency}"
    assert (row["requests"], row["failed"]) == (requests, 0)
    assert (row["output_tokens_min"], row["output_tokens_max"]) == (32, 32)
    assert row["concurrency_requested"] == concurrency
    assert row["concurrency"] == pytest.approx(concurrency, rel=0.01)
    # the parts of a request add up to it, by numbers that the tool itself wrote
    decode_s = row["itl_s"] * 31
    assert row["e2e_p50_s"] == pytest.approx(row["ttft_p50_s"] + decode_s, rel=0.1)


def test_the_two_files_of_one_run_agree():
    summary, records = (
        lk.loadtest.read(FILES / name).cells.row(0, named=True)
        for name in ("aiperf_0.13.0.json", "aiperf_0.13.0_records.jsonl")
    )
    for column in ("ttft_p50_s", "ttft_p99_s"):
        assert summary[column] == pytest.approx(records[column], rel=1e-9)
    assert summary["itl_s"] == pytest.approx(records["tpot_p50_s"], rel=1e-9)
    assert summary["e2e_p50_s"] == pytest.approx(records["e2e_p50_s"], rel=1e-3)
