"""Results of serving benchmarks: vLLM, SGLang, genai-perf, aiperf, guidellm.

Where a tool keeps the arrival of every token, a decode step is timed as in our own test; where it
keeps summaries only, the median time between tokens stands in, which prefill chunks disturb least.
"""

from __future__ import annotations

import itertools
import statistics
from typing import Any

from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._schema import cell_name
from ledgerkit.loadtest._steps import cell_row

__all__ = ["aiperf", "aiperf_records", "genai_perf", "guidellm", "sglang", "vllm"]

Rows = list[dict[str, Any]]
Found = tuple[str, Rows, Rows, dict[str, Any]]
_SPECULATES = 1.05


def _ms(value: Any) -> float | None:
    return None if value is None else float(value) / 1e3


def _refuse(tool: str, what: str, given: Any, allowed: str) -> LoadTestError:
    return LoadTestError(f"unknown version of {tool} results: {what}", given=given, allowed=allowed,
                         fix=f"run a known version of {tool}")  # fmt: skip


# vLLM and SGLang ------------------------------------------------------------------------------


def vllm(rows: Rows) -> Found:
    """Read ``vllm bench serve --save-result`` (vllm/benchmarks/serve.py), one object per run."""
    cells, requests = [], []
    for row in rows:
        if "mean_tpot_ms" not in row and "median_itl_ms" not in row:
            raise _refuse("vllm bench serve", "no TPOT and no ITL", sorted(row),
                          "mean_tpot_ms or median_itl_ms among the keys")  # fmt: skip
        asked = row.get("max_concurrency") or row["num_prompts"]
        cell, own = _served(row, float(asked), row.get("spec_decode_acceptance_length"))
        cells.append(cell)
        requests += own
    notes = {"model": rows[0].get("model_id"), "date": rows[0].get("date"),
             "request_rate": rows[0].get("request_rate")}  # fmt: skip
    return "vllm bench serve", cells, requests, notes


def sglang(rows: Rows) -> Found:
    """Read ``sglang.bench_serving --output-file`` (bench_serving.md), one line per run."""
    cells, requests = [], []
    for row in rows:
        if "median_itl_ms" not in row:
            raise _refuse("sglang.bench_serving", "no ITL", sorted(row), "median_itl_ms")
        asked = row.get("max_concurrency") or row.get("concurrency") or row["completed"]
        cell, own = _served(row, float(asked), row.get("accept_length"))
        cells.append(cell)
        requests += own
    notes = {"backend": rows[0].get("backend"), "request_rate": rows[0].get("request_rate")}
    return "sglang.bench_serving", cells, requests, notes


def _served(row: dict[str, Any], asked: float, accepted: Any) -> tuple[dict[str, Any], Rows]:
    """One run: with the clock of every request if it is there, else from summaries."""
    done = int(row["completed"])
    sent = int(row.get("num_prompts") or done)
    prompts = row["total_input_tokens"] / max(done, 1)
    outputs = row["total_output_tokens"] / max(done, 1)
    lengths = row.get("output_lens") or []
    good = [length for length in lengths if length]
    summary = {
        "prompt_tokens": round(prompts),
        "prompt_tokens_counted": prompts,
        "output_tokens": outputs,
        "output_tokens_min": min(good) if good else None,
        "output_tokens_max": max(good) if good else None,
        "concurrency_requested": asked,
        "ttft_p50_s": _ms(row.get("median_ttft_ms")),
        "ttft_p99_s": _ms(row.get("p99_ttft_ms")),
        "tpot_p50_s": _ms(row.get("median_tpot_ms")),
        "tpot_p99_s": _ms(row.get("p99_tpot_ms")),
        "e2e_p50_s": _ms(row.get("median_e2el_ms", row.get("median_e2e_latency_ms"))),
        "e2e_p99_s": _ms(row.get("p99_e2el_ms", row.get("p99_e2e_latency_ms"))),
        "itl_p99_s": _ms(row.get("p99_itl_ms")),
        "itl_mean_s": _ms(row.get("mean_tpot_ms")),
        "requests": sent,
        "failed": sent - done,
    }
    name = cell_name(summary["prompt_tokens"], asked)
    if row.get("start_times") and row.get("itls") and row.get("ttfts"):
        own = _clocked(row, name, asked)
        names = {"cell": name, "prompt_tokens": summary["prompt_tokens"],
                 "concurrency_requested": asked}  # fmt: skip
        return {**summary, **cell_row(own, names, {})}, own
    return {**summary, **_unclocked(row, accepted), "cell": name}, []


def _clocked(row: dict[str, Any], name: str, asked: float) -> Rows:
    begun = min(row["start_times"])
    errors = row.get("errors") or [""] * len(row["ttfts"])
    rows = []
    for i, (start, first, gaps) in enumerate(
        zip(row["start_times"], row["ttfts"], row["itls"], strict=True)
    ):
        times = list(itertools.accumulate([first, *gaps]))
        failed = bool(errors[i])
        rows.append(
            {
                "cell": name,
                "run": 0,
                "request": i,
                "concurrency_requested": int(asked),
                "status": "failed" if failed else "ok",
                "error": str(errors[i])[:300] or None,
                "start_s": start - begun,
                "ttft_s": None if failed else first,
                "e2e_s": times[-1],
                "prompt_tokens": int(row["input_lens"][i]),
                "output_tokens": int(row["output_lens"][i]),
                "cached_tokens": None,
                "tokens_from": "usage",
                "chunk_times_s": [] if failed else times,
            }
        )
    return rows


def _unclocked(row: dict[str, Any], accepted: Any) -> dict[str, Any]:
    gaps = [gap for one in row.get("itls") or [] for gap in one[1:]]
    if accepted and float(accepted) > _SPECULATES:
        # gaps are per step there, and a step yields several tokens
        step, method = _ms(row.get("median_tpot_ms") or row["mean_tpot_ms"]), "median TPOT"
    elif gaps:
        step, method = statistics.median(gaps), "median ITL"
    elif row.get("median_itl_ms"):
        step, method = _ms(row["median_itl_ms"]), "median ITL"
    else:
        step, method = _ms(row.get("median_tpot_ms") or row["mean_tpot_ms"]), "median TPOT"
    return {
        "itl_s": step,
        "itl_method": method,
        # sglang's own mean over the run; vllm tells none
        "concurrency": row.get("concurrency"),
        "tokens_per_chunk": float(accepted) if accepted else None,
        "tokens_per_s": row.get("output_throughput"),
        "tokens_per_s_one": 1.0 / step if step else None,
        "tokens_from": "usage",
    }


# genai-perf and aiperf ------------------------------------------------------------------------


def _statistic(row: dict[str, Any], name: str, *kinds: str) -> float | None:
    block = row.get(name)
    if not isinstance(block, dict):
        return None
    for kind in kinds:
        if block.get(kind) is not None:
            value = float(block[kind])
            unit = str(block.get("unit", "ms"))
            return value / 1e3 if unit == "ms" else value
    return None


def _profiled(row: dict[str, Any], asked: float) -> dict[str, Any]:
    """A cell from the statistics that both tools export."""
    outputs = row["output_sequence_length"]
    step = _statistic(row, "inter_token_latency", "p50", "avg")
    done = _statistic(row, "request_count", "avg") or 0.0
    failed = _statistic(row, "error_request_count", "avg") or 0.0
    return {
        "prompt_tokens": round(float(row["input_sequence_length"]["avg"])),
        "prompt_tokens_counted": float(row["input_sequence_length"]["avg"]),
        "output_tokens": float(outputs["avg"]),
        "output_tokens_min": outputs.get("min"),
        "output_tokens_max": outputs.get("max"),
        "concurrency_requested": asked,
        "itl_s": step,
        "itl_method": "median of per-request mean ITL",
        "tokens_per_s": _statistic(row, "output_token_throughput", "avg"),
        "tokens_per_s_one": 1.0 / step if step else None,
        "ttft_p50_s": _statistic(row, "time_to_first_token", "p50", "avg"),
        "ttft_p99_s": _statistic(row, "time_to_first_token", "p99"),
        "e2e_p50_s": _statistic(row, "request_latency", "p50", "avg"),
        "e2e_p99_s": _statistic(row, "request_latency", "p99"),
        "itl_p99_s": _statistic(row, "inter_token_latency", "p99"),
        "requests": int(done + failed),
        "failed": int(failed),
        "tokens_from": "usage",
    }


def genai_perf(rows: Rows) -> Found:
    """Read ``*_genai_perf.json`` of genai-perf (triton-inference-server/perf_analyzer)."""
    cells = []
    for row in rows:
        config = row["input_config"]
        stimulus = (config.get("perf_analyzer") or {}).get("stimulus") or {}
        asked = stimulus.get("concurrency", config.get("concurrency"))
        if asked is None:
            raise _refuse("genai-perf", "no concurrency in input_config", sorted(config),
                          "perf_analyzer.stimulus.concurrency or concurrency")  # fmt: skip
        cells.append(_profiled(row, float(asked)))
    return "genai-perf", cells, [], {}


def aiperf(rows: Rows) -> Found:
    """Read ``profile_export_aiperf.json`` (ai-dynamo/aiperf, schema 1.x)."""
    cells = []
    for row in rows:
        version = str(row.get("schema_version", "1.0"))
        if version.partition(".")[0] != "1":
            raise _refuse("aiperf", "schema_version", version, "1.x")
        asked = _aiperf_concurrency(row.get("input_config") or {})
        if asked is None:
            raise _refuse(
                "aiperf", "no concurrency in input_config", sorted(row.get("input_config") or {}),
                "a run with one --concurrency; else read profile_export.jsonl beside it",
            )  # fmt: skip
        achieved = _statistic(row, "effective_concurrency", "avg")
        cells.append(_profiled(row, asked) | {"concurrency": achieved})
    return "aiperf", cells, [], {"version": rows[0].get("aiperf_version")}


def _aiperf_concurrency(config: dict[str, Any]) -> float | None:
    """What was asked for: by phase since 0.13, under ``loadgen`` before."""
    asked = {
        phase["concurrency"]
        for phase in config.get("phases") or ()
        if phase.get("kind") == "profiling" and phase.get("concurrency") is not None
    }
    if len(asked) == 1:
        return float(asked.pop())
    before = (config.get("loadgen") or {}).get("concurrency", config.get("concurrency"))
    return None if before is None else float(before)


def aiperf_records(rows: Rows) -> Found:
    """Read ``profile_export.jsonl``: a line per request, with every gap between pieces."""
    kept = [row for row in rows if row["metadata"].get("benchmark_phase") == "profiling"]
    begun = min(row["metadata"]["request_start_ns"] for row in kept)
    requests = []
    for i, row in enumerate(kept):
        told = row["metrics"] or {}
        failed = row.get("error") is not None
        start = (row["metadata"]["request_start_ns"] - begun) / 1e9
        end = (row["metadata"]["request_end_ns"] - begun) / 1e9
        times: list[float] = []
        if not failed:
            gaps = told.get("inter_chunk_latency", {}).get("value") or []
            first = told["time_to_first_token"]["value"]
            times = [at / 1e3 for at in itertools.accumulate([first, *gaps])]
        requests.append(
            {
                "run": 0,
                "request": i,
                "status": "failed" if failed else "ok",
                "error": None if not failed else str(row["error"])[:300],
                "start_s": start,
                "ttft_s": times[0] if times else None,
                "e2e_s": end - start,
                "prompt_tokens": None if failed else int(told["input_sequence_length"]["value"]),
                "output_tokens": None if failed else int(told["output_sequence_length"]["value"]),
                "cached_tokens": None,
                "tokens_from": "usage",
                "chunk_times_s": times,
            }
        )
    good = [row for row in requests if row["status"] == "ok"]
    if not good:
        raise LoadTestError("no request of this file was answered", given=f"{len(requests)} failed",
                            allowed="at least one answer", fix="run the test again")  # fmt: skip
    prompt = round(statistics.median(row["prompt_tokens"] for row in good))
    asked = _most_at_once(good)
    name = cell_name(prompt, asked)
    for row in requests:
        row["cell"] = name
    names = {"cell": name, "prompt_tokens": prompt, "concurrency_requested": float(asked)}
    return "aiperf", [cell_row(requests, names, {})], requests, {}


def _most_at_once(rows: Rows) -> int:
    edges = [(row["start_s"], 1) for row in rows]
    edges += [(row["start_s"] + row["e2e_s"], -1) for row in rows]
    return max(itertools.accumulate(step for _, step in sorted(edges)))


# guidellm -------------------------------------------------------------------------------------


def guidellm(rows: Rows) -> Found:
    """Read ``benchmarks.json`` of guidellm (report versions 1 and 2)."""
    told = rows[0].get("metadata")
    metadata: dict[str, Any] = told if isinstance(told, dict) else {}
    version = metadata.get("version")
    if version not in (1, 2):
        raise _refuse("guidellm", "metadata.version", version, "1 or 2 (guidellm 0.4 and later)")
    cells = []
    for entry in rows[0]["benchmarks"]:
        metrics = entry["metrics"]
        config = entry.get("config") or {}
        strategy = config.get("strategy") or (entry.get("scheduler") or {}).get("strategy") or {}
        streams = strategy.get("streams", strategy.get("max_concurrency"))
        reached = _of(metrics, "request_concurrency", "mean")
        asked = float(streams) if streams else reached
        if asked is None:
            raise _refuse("guidellm", "no concurrency", sorted(metrics), "request_concurrency")
        outputs = metrics["output_token_count"]["successful"]
        step = _of(metrics, "inter_token_latency_ms", "median")
        totals = metrics.get("request_totals") or {}
        cells.append(
            {
                "prompt_tokens": round(metrics["prompt_token_count"]["successful"]["mean"]),
                "output_tokens": outputs["mean"],
                "output_tokens_min": outputs.get("min"),
                "output_tokens_max": outputs.get("max"),
                "concurrency_requested": max(1.0, float(round(asked))),
                "concurrency": reached if streams else None,
                "itl_s": _ms(step),
                "itl_method": "median of per-request mean ITL",
                "tokens_per_s": _of(metrics, "output_tokens_per_second", "mean"),
                "tokens_per_s_one": 1e3 / step if step else None,
                "ttft_p50_s": _ms(_of(metrics, "time_to_first_token_ms", "median")),
                "ttft_p99_s": _ms(_of(metrics, "time_to_first_token_ms", "p99")),
                "itl_p99_s": _ms(_of(metrics, "inter_token_latency_ms", "p99")),
                "e2e_p50_s": _of(metrics, "request_latency", "median"),
                "e2e_p99_s": _of(metrics, "request_latency", "p99"),
                "requests": totals.get("total"),
                "failed": (totals.get("errored") or 0),
                "tokens_from": "usage",
            }
        )
    return "guidellm", cells, [], {"version": metadata.get("guidellm_version")}


def _of(metrics: dict[str, Any], name: str, kind: str) -> float | None:
    block = metrics.get(name)
    good = block.get("successful") if isinstance(block, dict) else None
    if not isinstance(good, dict):
        return None
    value = good.get(kind, (good.get("percentiles") or {}).get(kind))
    return None if value is None else float(value)
