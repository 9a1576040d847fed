"""Reading a config takes less than five milliseconds; importing the reader loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from ledgerkit._data import data_directory
from ledgerkit.readers.config import read_config


def best_of(runs, config):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        read_config(config)
        times.append(time.perf_counter() - start)
    return min(times)


def test_every_built_in_config_is_read_in_five_milliseconds():
    slow = {}
    for path in sorted((data_directory() / "models").glob("*.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        read_config(config)
        seconds = best_of(10, config)
        if seconds >= 0.005:
            slow[path.stem] = seconds
    assert not slow


def test_a_long_list_of_unquantized_modules_is_no_burden():
    config = json.loads((data_directory() / "models" / "glm-5.2-fp8.json").read_text("utf-8"))
    names = ["lm_head"]
    for layer in range(79):
        at = f"model.layers.{layer}."
        names += [
            at + "input_layernorm",
            at + "post_attention_layernorm",
            at + "self_attn.q_a_layernorm",
            at + "self_attn.kv_a_layernorm",
            at + "self_attn.indexer.k_norm",
            at + "self_attn.indexers_proj",
            at + "mlp.gate",
            at + "mlp.gate.e_score_correction_bias",
        ]
    plain = read_config(config)
    config["quantization_config"]["modules_to_not_convert"] = names
    listed = read_config(config)
    assert listed.weight_bytes == plain.weight_bytes
    assert len(listed.groups) == len(plain.groups)
    assert best_of(10, config) < 0.005


def test_importing_the_reader_stays_light():
    code = (
        "import sys, ledgerkit.readers.config; "
        "heavy = {'polars', 'numba', 'altair', 'torch', 'transformers', 'ipywidgets', "
        "'huggingface_hub', 'numpy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
