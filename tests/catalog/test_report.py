"""A report for any reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ledgerkit as lk
from ledgerkit.errors import CatalogError


def test_slug_path_and_dict_say_the_same(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 100,
        "num_hidden_layers": 2, "num_attention_heads": 4,
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    frames = [lk.read_config_report(ref).to_frame("en") for ref in (config, path, str(path))]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])


@pytest.mark.parametrize("name", ["deepseek-v3", "deepseek-ai/DeepSeek-V3"])
def test_built_in_models_report_too(name: str) -> None:
    paths = lk.read_config_report(name).to_frame("zh")["path"].to_list()
    assert "kv_lora_rank" in paths


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(CatalogError, match="no built-in model"):
        lk.read_config_report("no-such-model")
