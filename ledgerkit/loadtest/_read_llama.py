"""Results of llama.cpp's tools.

``llama-bench`` (tools/llama-bench/README.md of ggml-org/llama.cpp) times one sequence: ``tg`` tests
at a depth are decode, ``pp`` tests are prefill. ``llama-batched-bench``
(tools/batched-bench/batched-bench.cpp) times PL sequences at once.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["bench_rows", "llama_batched_bench", "llama_bench", "markdown"]

Rows = list[dict[str, Any]]


def _decode(depth: float, tokens: float, rate: float, run: int | None) -> dict[str, Any]:
    return {
        "prompt_tokens": depth,
        "output_tokens": tokens,
        "output_tokens_min": tokens,
        "output_tokens_max": tokens,
        "context_tokens": depth + tokens / 2.0,
        "concurrency_requested": 1.0,
        "concurrency": 1.0,
        "itl_s": 1.0 / rate,
        "itl_method": "mean of a decode-only test",
        "steady_tokens": tokens,
        "tokens_per_s": rate,
        "tokens_per_s_one": rate,
        "tokens_from": "usage",
        "run": run,
    }


def bench_rows(rows: Rows) -> Rows:
    """Cells of llama-bench: one per sample of a decode test, TTFT from prefill tests."""
    prefill: dict[float, float] = {}
    cells = []
    for row in rows:
        prompt, made = float(row["n_prompt"]), float(row["n_gen"])
        depth, mean = float(row.get("n_depth") or 0), float(row["avg_ts"])
        samples = [float(rate) for rate in row.get("samples_ts") or [mean]]
        if made and not prompt:
            cells += [
                _decode(depth, made, rate, run if len(samples) > 1 else None)
                for run, rate in enumerate(samples)
            ]
        elif prompt and not made and not depth:
            prefill[prompt] = prompt / mean
    for cell in cells:
        time_s = prefill.get(cell["prompt_tokens"])
        if time_s is not None:
            cell["ttft_p50_s"] = time_s
    return cells


def llama_bench(rows: Rows) -> tuple[str, Rows, Rows, dict[str, Any]]:
    """Read JSON or JSON lines of llama-bench."""
    first = rows[0]
    notes = {
        "build": f"{first['build_commit']} ({first.get('build_number')})",
        "model": first.get("model_type"),
        "kv_dtype": [first.get("type_k"), first.get("type_v")],
    }
    return "llama-bench", bench_rows(rows), [], notes


def llama_batched_bench(rows: Rows) -> tuple[str, Rows, Rows, dict[str, Any]]:
    """Read JSON lines of llama-batched-bench."""
    cells = [
        _batched(row["pp"], row["tg"], row["pl"], row["t_pp"], row["t_tg"])
        for row in rows
        if row["tg"] and row["t_tg"] > 0
    ]
    shared = any(row.get("is_pp_shared") for row in rows)
    return "llama-batched-bench", cells, [], {"prompt_shared": shared}


def _batched(
    prompt: float, made: float, sequences: float, prefill_s: float, decode_s: float
) -> dict[str, Any]:
    step = decode_s / made
    return {
        **_decode(float(prompt), float(made), 1.0 / step, None),
        "concurrency_requested": float(sequences),
        "concurrency": float(sequences),
        "tokens_per_s": sequences / step,
        "ttft_p50_s": float(prefill_s) if sequences == 1 else None,
    }


_TEST = re.compile(r"^(pp|tg)\s*(\d+)(?:\s*@\s*d\s*(\d+))?$")


def markdown(text: str) -> tuple[str, Rows, Rows, dict[str, Any]] | None:
    """Read the tables that both tools print; None when there is none of theirs."""
    header: list[str] = []
    bench: Rows = []
    batched: Rows = []
    for line in text.splitlines():
        if not line.lstrip().startswith("|"):
            header = []
            continue
        fields = [part.strip() for part in line.strip().strip("|").split("|")]
        if not header:
            header = fields
        elif set("".join(fields)) <= set("-: "):
            continue
        elif {"test", "t/s"} <= set(header):
            test = _TEST.match(fields[header.index("test")])
            if test is not None:
                bench.append(_bench_line(test, fields[header.index("t/s")]))
        elif {"PP", "TG", "B", "T_TG s"} <= set(header):
            row = dict(zip(header, map(float, fields), strict=True))
            if row["TG"] and row["T_TG s"] > 0:
                batched.append(
                    _batched(row["PP"], row["TG"], row["B"], row["T_PP s"], row["T_TG s"])
                )
    if bench:
        return "llama-bench", bench_rows(bench), [], {}
    return ("llama-batched-bench", batched, [], {}) if batched else None


def _bench_line(test: re.Match[str], rate: str) -> dict[str, Any]:
    tokens = int(test[2])
    return {
        "n_prompt": tokens if test[1] == "pp" else 0,
        "n_gen": tokens if test[1] == "tg" else 0,
        "n_depth": int(test[3] or 0),
        "avg_ts": float(rate.partition("±")[0]),
    }
