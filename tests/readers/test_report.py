"""The reading report says what every field did."""

from __future__ import annotations

import json

import pytest

from ledgerkit import text
from ledgerkit._data import data_directory
from ledgerkit.errors import UnsupportedArchitectureError
from ledgerkit.readers.report import read_config_report

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "rope_theta": 10000.0,
    "eos_token_id": 2,
    "torch_dtype": "bfloat16",
}


def built_in():
    return sorted((data_directory() / "models").glob("*.json"))


def test_every_stated_field_is_either_read_or_ignored_with_a_reason():
    for path in built_in():
        config = json.loads(path.read_text(encoding="utf-8"))
        frame = read_config_report(config).to_frame("en")
        seen = set(frame["path"])
        inner = config.get("text_config")
        stated = {f"text_config.{name}" for name in inner} if inner else set(config)
        # these name the reader, or are read as a whole
        handled = {"model_type", "linear_attn_config", "sparse_attention_config", "block_configs"}
        for name in stated:
            leaf = name.rpartition(".")[2]
            if leaf in handled or leaf.startswith("_"):
                continue
            assert name in seen, (path.name, name)


def test_defaults_and_derived_values_say_so():
    frame = read_config_report(CONFIG).to_frame("en")
    rows = {row["path"]: row for row in frame.iter_rows(named=True)}
    assert rows["num_key_value_heads"]["origin"] == "derived"
    assert rows["num_key_value_heads"]["rule"] == "num_attention_heads"
    assert rows["attention_bias"]["origin"] == "class default"
    assert rows["hidden_size"]["origin"] == "config"
    assert rows["eos_token_id"]["status"] == "ignored"


@pytest.mark.parametrize("language", ["zh", "en"])
def test_text_is_complete_in_both_languages(language):
    report = read_config_report(CONFIG)
    shown = report.text(language)
    for name in CONFIG:
        if name != "model_type":
            assert name in shown
    assert text.get("reading.used", language) in shown
    assert str(report) == report.text()


def test_every_reason_and_topic_has_words():
    from ledgerkit.readers import irrelevant, report

    for language in text.LANGUAGES:
        for topic in report._BY_TOPIC:
            assert text.get(f"reading.decides.{topic}", language)
        for reason in irrelevant._BY_REASON:
            assert text.get(f"reading.reason.{reason.replace(' ', '_')}", language)


def test_a_refusal_names_all_unknown_fields():
    config = {**CONFIG, "new_attention": "spiral", "another_thing": 3}
    with pytest.raises(UnsupportedArchitectureError) as caught:
        read_config_report(config)
    assert "new_attention" in str(caught.value)
    assert "another_thing" in str(caught.value)
