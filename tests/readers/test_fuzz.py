"""Damaged configs: each gives a model or a ``LedgerError``, never another exception.

A model that comes out of a damaged config must be the one that the damaged config describes: a
field that shapes the architecture and was dropped or changed may not leave the counts as they were
without the reading saying where its value came from.
"""

from __future__ import annotations

import copy
import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgerkit._data import data_directory
from ledgerkit.errors import ConfigError, LedgerError
from ledgerkit.readers.config import parse_json, read_config, read_with_record

CONFIGS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((data_directory() / "models").glob("*.json"))
}
ODD = [
    None,
    True,
    False,
    0,
    1,
    -1,
    3,
    7,
    2.5,
    -0.0,
    float("inf"),
    1e300,
    2**31,
    2**63,
    10**40,
    "",
    "12",
    "full_attention",
    "\x00",
    [],
    [None],
    [0, 1],
    [-1] * 61,
    ["full_attention"] * 30,
    {},
    {"a": 1},
    {"config_groups": 3},
    [[]],
]


def places(config, path=()):
    """Every place in a nested config."""
    for key, value in config.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


def parent_of(config, path):
    for key in path[:-1]:
        config = config[key]
    return config


def read_or_refuse(config):
    try:
        model = read_config(config)
    except LedgerError:
        return None
    assert model.parameter_count > 0
    assert sum(model.parameters.values()) == model.parameter_count
    assert model.weight_bytes > 0
    assert model.cache_bytes(5) >= 0
    assert 0 < model.active_parameter_count <= model.active_parameter_count_with_embedding
    return model


@pytest.mark.parametrize("slug", sorted(CONFIGS))
def test_each_field_dropped(slug):
    for path in list(places(CONFIGS[slug])):
        damaged = copy.deepcopy(CONFIGS[slug])
        del parent_of(damaged, path)[path[-1]]
        read_or_refuse(damaged)


@pytest.mark.parametrize("slug", sorted(CONFIGS))
def test_each_field_replaced_by_odd_values(slug):
    chooser = random.Random(slug)
    for path in list(places(CONFIGS[slug])):
        for value in chooser.sample(ODD, 3):
            damaged = copy.deepcopy(CONFIGS[slug])
            parent_of(damaged, path)[path[-1]] = value
            read_or_refuse(damaged)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_several_faults_at_once(data):
    config = copy.deepcopy(CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))])
    for _ in range(data.draw(st.integers(1, 5))):
        paths = list(places(config))
        if not paths:
            break
        path = data.draw(st.sampled_from(paths))
        parent = parent_of(config, path)
        match data.draw(st.sampled_from(["drop", "odd", "number", "rename", "list", "wrap"])):
            case "drop":
                del parent[path[-1]]
            case "odd":
                parent[path[-1]] = data.draw(st.sampled_from(ODD))
            case "number":
                parent[path[-1]] = data.draw(st.integers(-5, 10_000))
            case "rename":
                parent[path[-1] + "_x"] = parent.pop(path[-1])
            case "list":
                old = parent[path[-1]]
                parent[path[-1]] = old[:-1] if isinstance(old, list) else [old] * 3
            case "wrap":
                parent[path[-1]] = {"value": parent[path[-1]]}
    read_or_refuse(config)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    config=st.dictionaries(
        st.sampled_from(
            ["model_type", "text_config", "quantization_config", "hidden_size", "_replace", "_name"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=8), inner, max_size=3)
            ),
            max_leaves=8,
        ),
    ),
    kind=st.sampled_from(["llama", "gemma3", "deepseek_v3", "kimi_linear", "nemotron-nas", None]),
)
def test_arbitrary_content(config, kind):
    if kind is not None:
        config["model_type"] = kind
    read_or_refuse(config)


# Fields whose absence is decided by the class, with a value other than the one of the file.
@pytest.mark.parametrize("slug", sorted(CONFIGS))
def test_a_dropped_size_is_refused_or_named_as_inferred(slug):
    whole = read_config(CONFIGS[slug])
    for path in list(places(CONFIGS[slug])):
        if path[0].startswith("_") or "quantization_config" in path:
            continue
        damaged = copy.deepcopy(CONFIGS[slug])
        del parent_of(damaged, path)[path[-1]]
        try:
            model, record = read_with_record(damaged)
        except LedgerError:
            continue
        if model.parameters == whole.parameters and model.groups == whole.groups:
            continue
        named = {use.path.rpartition(".")[2] for use in record.used if use.origin != "config"}
        explained = {key for key, _ in record.assumptions}
        assert path[-1] in named or explained or path[-1] in RULED, (slug, path)


RULED = {
    # absence has a meaning of its own, stated by another field
    "vision_config",
    "layer_types",
    "hybrid_override_pattern",
    "sparse_attention_config",
    "linear_attn_config",
    "moe_layers_enum",
    "model_type",
    "architectures",
    "dtype",
    "torch_dtype",
    "tie_word_embeddings",
}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"model_type": "llama", "model_type": "qwen2"}', "twice"),
        ('{"hidden_size": NaN}', "number"),
        ("[1, 2]", "object"),
        ("{", "JSON"),
        ("", "JSON"),
        ("[" * 100_000, "JSON|nested"),
        ('{"a": ' * 5000 + "1" + "}" * 5000, "nested|JSON"),
    ],
)
def test_damaged_json_is_refused(text, what):
    with pytest.raises(ConfigError, match=what):
        parse_json(text, "config.json")


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "config.json"
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(path)
    path.write_bytes(b'\xff\xfe{"a":1}')
    with pytest.raises(ConfigError, match="UTF-8"):
        read_config(path)
    path.write_bytes(b" " * (17 << 20))
    with pytest.raises(ConfigError, match="large"):
        read_config(path)
    with pytest.raises(ConfigError):
        read_config(tmp_path)


@pytest.mark.parametrize("config", [None, 3, "text", [], object()])
def test_things_that_are_no_config(config):
    with pytest.raises(LedgerError):
        read_config(config)
