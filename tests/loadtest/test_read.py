"""Files as the tools write them (keys as documented), and files that must be refused."""

import json
import math

import pytest

import ledgerkit as lk
from ledgerkit.errors import LoadTestError


def write(folder, name, content):
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


VLLM = {
    "date": "20260701-120000", "endpoint_type": "openai", "label": None, "model_id": "org/model",
    "tokenizer_id": "org/model", "num_prompts": 8, "request_rate": "inf", "burstiness": 1.0,
    "max_concurrency": 4, "duration": 10.0, "completed": 8, "failed": 0,
    "total_input_tokens": 8192, "total_output_tokens": 2048, "request_throughput": 0.8,
    "output_throughput": 204.8, "total_token_throughput": 1024.0, "mean_ttft_ms": 60.0,
    "median_ttft_ms": 55.0, "p99_ttft_ms": 90.0, "mean_tpot_ms": 21.0, "median_tpot_ms": 20.5,
    "p99_tpot_ms": 23.0, "mean_itl_ms": 21.0, "median_itl_ms": 20.0, "p99_itl_ms": 40.0,
}  # fmt: skip


def test_vllm_summaries_use_the_median_time_between_tokens(tmp_path):
    found = lk.loadtest.read(write(tmp_path, "a.json", VLLM))
    row = found.cells.row(0, named=True)
    assert row["cell"] == "1K x 4"
    assert row["itl_s"] == pytest.approx(0.020)
    assert row["itl_method"] == "median ITL"
    assert (row["ttft_p50_s"], row["ttft_p99_s"]) == (0.055, 0.090)
    assert (row["requests"], row["failed"], row["output_tokens"]) == (8, 0, 256)
    assert found.provenance["tool"] == "vllm bench serve"


def test_vllm_speculation_counts_per_token(tmp_path):
    given = {**VLLM, "spec_decode_acceptance_length": 2.4}
    row = lk.loadtest.read(write(tmp_path, "a.json", given)).cells.row(0, named=True)
    assert row["itl_s"] == pytest.approx(0.0205)
    assert row["tokens_per_chunk"] == 2.4


def test_vllm_details_are_timed_like_our_own_test(tmp_path):
    # two requests: the second one's prefill stalls the first for 0.5 s
    detail = {
        **VLLM, "num_prompts": 2, "completed": 2, "max_concurrency": 2,
        "total_input_tokens": 2000, "total_output_tokens": 42,
        "start_times": [100.0, 100.0], "ttfts": [1.0, 1.6], "errors": ["", ""],
        "itls": [[0.5, 0.1, *[0.1] * 18], [0.1] * 20],
        "input_lens": [1000, 1000], "output_lens": [21, 21],
    }  # fmt: skip
    found = lk.loadtest.read(write(tmp_path, "a.json", detail))
    row = found.cells.row(0, named=True)
    assert row["itl_s"] == pytest.approx(0.1, rel=1e-6)
    assert row["concurrency"] == 2
    assert row["itl_method"] == "steady window"
    assert found.requests.height == 2


def test_vllm_appended_results_are_runs_of_their_cells(tmp_path):
    text = "\n".join(json.dumps({**VLLM, "median_itl_ms": value}) for value in (20.0, 21.0, 22.0))
    found = lk.loadtest.read(write(tmp_path, "a.json", text))
    assert found.cells["run"].to_list() == [0, 1, 2]


def test_files_of_one_test_are_numbered_together(tmp_path):
    for i, many in enumerate((1, 4, 1, 4)):
        write(tmp_path, f"{i}.json", {**VLLM, "max_concurrency": many})
    found = lk.loadtest.read(tmp_path)
    assert found.cells.select("cell", "run").rows() == [
        ("1K x 1", 0), ("1K x 4", 0), ("1K x 1", 1), ("1K x 4", 1)
    ]  # fmt: skip


SGLANG = {
    "backend": "sglang-oai", "dataset_name": "random-ids", "request_rate": float("inf"),
    "max_concurrency": 16, "random_input_len": 1024, "random_output_len": 256,
    "random_range_ratio": 1.0, "duration": 9.9, "completed": 32, "total_input_tokens": 32768,
    "total_output_tokens": 8192, "total_output_tokens_retokenized": 8190,
    "output_throughput": 800.0,
    "median_ttft_ms": 120.0, "p99_ttft_ms": 300.0, "mean_tpot_ms": 31.0, "median_tpot_ms": 30.5,
    "median_itl_ms": 30.0, "p99_itl_ms": 80.0, "median_e2e_latency_ms": 8000.0,
    "p99_e2e_latency_ms": 9000.0, "concurrency": 15.8, "accept_length": None,
}  # fmt: skip


def test_sglang_lines(tmp_path):
    text = "\n".join(json.dumps(SGLANG) for _ in range(2))
    found = lk.loadtest.read(write(tmp_path, "a.jsonl", text))
    row = found.cells.row(1, named=True)
    assert (row["cell"], row["run"]) == ("1K x 16", 1)
    assert row["itl_s"] == pytest.approx(0.030)
    assert row["e2e_p99_s"] == 9.0


LLAMA_BENCH = {
    "build_commit": "8cf427ff", "build_number": 5163, "model_type": "qwen2 7B Q4_K - Medium",
    "type_k": "f16", "type_v": "f16", "n_prompt": 0, "n_gen": 128, "n_depth": 512,
    "avg_ns": 1, "stddev_ns": 1, "avg_ts": 100.0, "stddev_ts": 1.0,
}  # fmt: skip


def test_llama_bench_json_has_one_run_per_sample(tmp_path):
    rows = [
        {**LLAMA_BENCH, "samples_ts": [100.0, 80.0, 125.0]},
        {**LLAMA_BENCH, "n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 1024.0},
    ]
    found = lk.loadtest.read(write(tmp_path, "a.json", rows))
    assert found.cells["itl_s"].to_list() == pytest.approx([0.01, 0.0125, 0.008])
    assert found.cells["run"].to_list() == [0, 1, 2]
    assert found.cells["context_tokens"].to_list() == [576.0] * 3
    assert found.cells["ttft_p50_s"].to_list() == [0.5] * 3
    assert found.provenance["build"] == "8cf427ff (5163)"


def test_llama_bench_lines_csv_and_table(tmp_path):
    lines = write(tmp_path, "a.jsonl", json.dumps(LLAMA_BENCH) + "\n" + json.dumps(LLAMA_BENCH))
    assert lk.loadtest.read(lines).cells["itl_s"].to_list() == [0.01, 0.01]
    header = ",".join(LLAMA_BENCH)
    values = ",".join(f'"{value}"' for value in LLAMA_BENCH.values())
    table = write(tmp_path, "a.csv", f"{header}\n{values}\n")
    assert lk.loadtest.read(table).cells["context_tokens"].to_list() == [576.0]
    text = """
| model                  |     size |  params | backend | ngl |         test |             t/s |
| ---------------------- | -------: | ------: | ------- | --: | -----------: | --------------: |
| qwen2 7B Q4_K - Medium | 4.36 GiB |  7.62 B | CUDA    |  -1 |        pp512 | 7340.20 ± 23.45 |
| qwen2 7B Q4_K - Medium | 4.36 GiB |  7.62 B | CUDA    |  -1 | tg128 @ d512 |   125.00 ± 0.60 |
| qwen2 7B Q4_K - Medium | 4.36 GiB |  7.62 B | CUDA    |  -1 |       tg 128 |   250.00 ± 0.60 |
"""
    cells = lk.loadtest.read(write(tmp_path, "a.md", text)).cells
    assert cells.select("context_tokens", "itl_s").rows() == [(576.0, 0.008), (64.0, 0.004)]


def test_batched_bench_lines_and_table_agree(tmp_path):
    line = {"n_kv_max": 8192, "n_batch": 2048, "n_ubatch": 512, "is_pp_shared": 0, "pp": 1024,
            "tg": 128, "pl": 4, "n_kv": 4608, "t_pp": 2.0, "speed_pp": 2048.0, "t_tg": 3.2,
            "speed_tg": 160.0, "t": 5.2, "speed": 886.0}  # fmt: skip
    text = """
|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|  1024 |    128 |    4 |   4608 |    2.000 |  2048.00 |    3.200 |   160.00 |    5.200 |   886.00 |
"""
    a = lk.loadtest.read(write(tmp_path, "a.jsonl", json.dumps(line))).cells
    b = lk.loadtest.read(write(tmp_path, "a.md", text)).cells
    assert a.equals(b)
    row = a.row(0, named=True)
    assert (row["cell"], row["itl_s"], row["context_tokens"]) == ("1K x 4", 0.025, 1088.0)
    assert row["tokens_per_s"] == pytest.approx(160.0)
    assert row["ttft_p50_s"] is None


def stat(value, unit="ms", **more):
    return {"unit": unit, "avg": value, "p50": value, "p99": 2 * value, "min": value,
            "max": value, "std": 0.0, **more}  # fmt: skip


PROFILED = {
    "request_throughput": {"unit": "requests/sec", "avg": 0.8},
    "request_count": {"unit": "requests", "avg": 10.0},
    "request_latency": stat(2400.0), "time_to_first_token": stat(195.0),
    "inter_token_latency": stat(35.0),
    "output_token_throughput": {"unit": "tokens/sec", "avg": 52.7},
    "output_sequence_length": stat(64.0, "tokens"), "input_sequence_length": stat(256.0, "tokens"),
}  # fmt: skip


def test_aiperf_summary(tmp_path):
    given = {"schema_version": "1.3", "aiperf_version": "0.10.0", **PROFILED,
             "input_config": {"loadgen": {"concurrency": 2}}}  # fmt: skip
    row = lk.loadtest.read(write(tmp_path, "a.json", given)).cells.row(0, named=True)
    assert (row["cell"], row["itl_s"], row["ttft_p99_s"]) == ("256 x 2", 0.035, 0.39)
    assert (row["output_tokens_min"], row["tokens_per_s"]) == (64.0, 52.7)


def test_genai_perf_summary(tmp_path):
    given = {"input_config": {"perf_analyzer": {"stimulus": {"concurrency": 4}}}, **PROFILED}
    found = lk.loadtest.read(write(tmp_path, "a.json", given))
    assert found.cells["cell"].to_list() == ["256 x 4"]
    assert found.provenance["tool"] == "genai-perf"


def test_aiperf_records_are_timed_like_our_own_test(tmp_path):
    def record(start_s, first_ms, gaps):
        begin = 1_759_813_207_000_000_000 + int(start_s * 1e9)
        return {
            "metadata": {"request_start_ns": begin, "benchmark_phase": "profiling",
                         "request_end_ns": begin + int((first_ms + sum(gaps)) * 1e6)},
            "metrics": {"input_sequence_length": {"value": 512, "unit": "tokens"},
                        "output_sequence_length": {"value": len(gaps) + 1, "unit": "tokens"},
                        "time_to_first_token": {"value": first_ms, "unit": "ms"},
                        "inter_chunk_latency": {"value": gaps, "unit": "ms"}},
            "error": None,
        }  # fmt: skip

    bad = {**record(0, 1, []), "error": {"code": 499, "type": "X", "message": "cancelled"}}
    rows = [record(0, 100, [10] * 50), record(0, 200, [10] * 50), bad]
    text = "\n".join(json.dumps(row) for row in rows)
    found = lk.loadtest.read(write(tmp_path, "profile_export.jsonl", text))
    row = found.cells.row(0, named=True)
    assert row["cell"] == "512 x 2"
    assert row["itl_s"] == pytest.approx(0.010, rel=1e-6)
    assert (row["requests"], row["failed"]) == (3, 1)
    assert found.failures["error"][0].find("cancelled") > 0


def guide(version):
    def spread(value):
        block = {"mean": value, "median": value, "min": value, "max": value,
                 "percentiles": {"p50": value, "p99": 3 * value}}  # fmt: skip
        return {"successful": block, "errored": None, "incomplete": None, "total": block}

    return {
        "metadata": {"version": version, "guidellm_version": "0.6.0"},
        "benchmarks": [
            {
                "config": {"strategy": {"type_": "concurrent", "streams": 8}},
                "metrics": {
                    "request_totals": {"successful": 20, "errored": 1, "total": 21},
                    "request_concurrency": spread(7.6), "request_latency": spread(6.0),
                    "prompt_token_count": spread(1024.0), "output_token_count": spread(128.0),
                    "time_to_first_token_ms": spread(80.0), "inter_token_latency_ms": spread(12.0),
                    "output_tokens_per_second": spread(600.0),
                },
            }
        ],
    }  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_guidellm_reports(tmp_path, version):
    found = lk.loadtest.read(write(tmp_path, "benchmarks.json", guide(version)))
    row = found.cells.row(0, named=True)
    assert (row["cell"], row["itl_s"], row["concurrency"]) == ("1K x 8", 0.012, 7.6)
    assert (row["requests"], row["failed"], row["ttft_p99_s"]) == (21, 1, 0.24)


def test_a_plain_csv_with_a_column_map(tmp_path):
    file = write(tmp_path, "a.csv", "ctx,bs,tpot_ms,note\n1024,1,12.5,x\n1024,2,,y\n")
    columns = {"prompt_tokens": "ctx", "concurrency_requested": "bs", "itl_s": ("tpot_ms", 1e-3)}
    found = lk.loadtest.read(file, columns=columns)
    assert found.cells["itl_s"].to_list() == [0.0125, None]
    assert found.cells["cell"].to_list() == ["1K x 1", "1K x 2"]


REFUSED = [
    ("a.json", guide(3), "version of guidellm", "3"),
    ("a.json", {**guide(1), "metadata": {}}, "version of guidellm", "1 or 2"),
    ("a.json", {"schema_version": "2.0", "aiperf_version": "9", **PROFILED}, "aiperf", "2.0"),
    ("a.json", {"schema_version": "1.3", "aiperf_version": "0.10.0", **PROFILED,
                "input_config": {}}, "concurrency", "profile_export.jsonl"),
    ("a.json", {k: v for k, v in VLLM.items() if "tpot" not in k and "itl" not in k},
     "vllm bench serve", "mean_ttft_ms"),
    ("a.json", {k: v for k, v in VLLM.items() if k != "completed"}, "vllm", "completed"),
    ("a.jsonl", {k: v for k, v in SGLANG.items() if k != "median_itl_ms"}, "sglang",
     "median_itl_ms"),
    ("a.json", {"hello": 1}, "unknown result format", "hello"),
    ("a.json", "[1, 2]", "unknown result format", "no object"),
    ("a.json", '{"model_id": "x", "total_', "broken JSON", "cut off"),
    ("a.csv", "a,b\n1,2\n", "unknown result format", "columns="),
    ("a.md", "# nothing\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", "unknown result format", "nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "what", "found"), REFUSED)
def test_what_is_not_known_is_refused_with_what_was_found(tmp_path, name, content, what, found):
    with pytest.raises(LoadTestError) as refused:
        lk.loadtest.read(write(tmp_path, name, content))
    assert what in str(refused.value)
    assert found in str(refused.value)


@pytest.mark.parametrize("wrong", [None, "x", -5, math.nan, 10**400, [], {}, True])
@pytest.mark.parametrize(
    "whole", [VLLM, SGLANG, LLAMA_BENCH, PROFILED], ids=["vllm", "sglang", "llama-bench", "aiperf"]
)
def test_values_of_another_kind_are_refused_or_left_out(tmp_path, whole, wrong):
    """Whatever stands under one key: an error that names the file, or rows that can be judged."""
    for key in whole:
        file = write(tmp_path, "a.json", {**whole, key: wrong})
        try:
            results = lk.loadtest.read(file)
        except LoadTestError as refused:
            assert "a.json" in str(refused)  # noqa: PT017  either outcome is right
            continue
        assert lk.loadtest.diagnose(results).verdict == "undetermined"


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"speed": "bs"}, "no columns of ours"),
        ({"itl_s": "missing"}, "does not have these columns"),
        ({"itl_s": "note"}, "line 2, column 'note'"),
    ],
)
def test_a_wrong_column_map_names_the_column(tmp_path, columns, what):
    with pytest.raises(LoadTestError, match=what):
        lk.loadtest.read(write(tmp_path, "a.csv", "bs,note\n1,x\n"), columns=columns)


def test_a_foreign_parquet_is_refused(tmp_path):
    import polars as pl

    file = tmp_path / "x.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(file)
    with pytest.raises(LoadTestError, match="does not hold"):
        lk.loadtest.read(file)


def test_what_was_read_can_be_judged(tmp_path):
    for c in (1024, 32768):
        for b in (1, 16):
            for run in range(3):
                step = (6 + 5e-5 * b * c) * (1 + 0.01 * (-1) ** run)
                write(tmp_path, f"{c}_{b}_{run}.json", {
                    **VLLM, "max_concurrency": b, "num_prompts": b, "completed": b,
                    "total_input_tokens": c * b, "total_output_tokens": 256 * b,
                    "median_itl_ms": step})  # fmt: skip
    found = lk.loadtest.diagnose(lk.loadtest.read(tmp_path), at=(32768, 16))
    assert found.verdict == "attention_kv"
    assert found.attention_kv_share.value == pytest.approx(26.2 / 32.2, abs=0.01)
