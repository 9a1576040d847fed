"""Counts of every reference config, to the parameter, and by account."""

from __future__ import annotations

import csv
import json

import pytest

from ledgerkit.readers.config import read_config

ATTENTION = "attention_kv"
FFN = "ffn_mlp"
MIXERS = (
    "attn_full",
    "attn_sliding",
    "attn_linear",
    "attn_mamba",
    "attn_mla",
    "attn_csa_hca",
)
RESIDUAL = ("altup_laurel", "hyper_conn", "other")


def rows(shared, name):
    with (shared / "facts" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def config_path(shared, name):
    return shared / "facts" / "configs" / (name.replace("/", "__") + ".json")


def columns(row, *names):
    return sum(int(row[name] or 0) for name in names)


@pytest.fixture(scope="session")
def counted(shared):
    """(row, model) of every text variant that the oracle could build."""
    found = [
        (row, read_config(config_path(shared, row["id"])))
        for row in rows(shared, "parameter_counts.csv")
        if row["variant"] == "text" and row["total"]
    ]
    assert len(found) >= 78
    return found


def test_totals_equal_the_reference(counted):
    wrong = {
        row["id"]: (model.parameter_count, row["total"])
        for row, model in counted
        if model.parameter_count != int(row["total"])
    }
    assert not wrong


def test_active_counts_equal_the_reference(counted):
    wrong = {}
    for row, model in counted:
        ours = (model.active_parameter_count, model.active_parameter_count_with_embedding)
        theirs = (int(row["active_excl_input_embed"]), int(row["active_incl_embed"]))
        if ours != theirs:
            wrong[row["id"]] = (ours, theirs)
    assert not wrong


def test_accounts_sum_to_the_total(counted):
    for _, model in counted:
        assert sum(model.parameters.values()) == model.parameter_count


def by_account(model):
    """The columns of the reference, gathered from our accounts."""
    books = model.parameters
    heads = sum(w.elements for w in model.globals if w.account == "vocab" and w.use != "vector")
    final = sum(w.elements for w in model.globals if w.account == "vocab" and w.use == "vector")
    return {
        "vocab": heads,
        "norms": books.get((ATTENTION, "norms"), 0) + books.get((FFN, "norms"), 0) + final,
        "mixers": books.get((ATTENTION, "projections"), 0) + books.get((ATTENTION, "state"), 0),
        "indexer": books.get((ATTENTION, "indexer"), 0),
        "dense": books.get((FFN, "dense"), 0),
        "routed": books.get((FFN, "routed_experts"), 0),
        "shared": books.get((FFN, "shared_experts"), 0),
        "router": books.get((FFN, "router"), 0),
        "per_layer": books.get((FFN, "per_layer_embedding"), 0),
        "residual": books.get((FFN, "residual"), 0),
    }


def test_each_account_equals_its_columns(counted):
    wrong = {}
    for row, model in counted:
        theirs = {
            "vocab": columns(row, "embedding", "lm_head"),
            "norms": columns(row, "norms"),
            "mixers": columns(row, *MIXERS),
            "indexer": columns(row, "indexer"),
            "dense": columns(row, "ffn_dense"),
            "routed": columns(row, "experts_routed"),
            "shared": columns(row, "experts_shared"),
            "router": columns(row, "router"),
            "per_layer": columns(row, "per_layer_embed"),
            "residual": columns(row, *RESIDUAL),
        }
        ours = by_account(model)
        if ours != theirs:
            wrong[row["id"]] = {k: (ours[k], theirs[k]) for k in ours if ours[k] != theirs[k]}
    assert not wrong


def test_mtp_blocks_equal_the_reference(shared):
    special = json.loads((shared / "facts" / "mtp_and_special_counts.json").read_text("utf-8"))
    checked = 0
    for entry in special:
        if "mtp_unique" not in entry:
            continue
        model = read_config(config_path(shared, entry["id"]))
        assert model.mtp is not None, entry["id"]
        assert model.mtp.parameter_count == entry["mtp_unique"], entry["id"]
        copies = entry["mtp_embed_head_copies"]
        assert model.parameter_count + model.mtp.parameter_count + copies == entry[
            "ckpt_total"
        ] - vision(shared, entry["id"])
        if "per_mtp_layer" in entry:
            assert model.mtp.parameter_count == model.mtp.num_layers * entry["per_mtp_layer"]
        checked += 1
    assert checked == 12


def vision(shared, name):
    """Elements of the towers that a checkpoint total includes."""
    return sum(
        columns(row, "vision", "audio", "projector")
        for row in rows(shared, "parameter_counts.csv")
        if row["id"] == name and row["variant"] == "multimodal"
    )


def test_models_that_the_oracle_cannot_build(shared):
    special = json.loads((shared / "facts" / "mtp_and_special_counts.json").read_text("utf-8"))
    by_id = {entry["id"]: entry for entry in special if "total_text" in entry}
    assert set(by_id) == {"stepfun-ai/step3", "nvidia/Llama-3_3-Nemotron-Super-49B-v1"}
    for name, entry in by_id.items():
        model = read_config(config_path(shared, name))
        ours = by_account(model)
        assert model.parameter_count == entry["total_text"]
        assert ours["vocab"] == entry["embedding"] + entry["lm_head"]
        assert ours["mixers"] == entry.get("attn_mfa", entry.get("attn_full"))
        assert ours["dense"] == entry["ffn_dense"]
        assert ours["routed"] == entry.get("experts_routed", 0)
        assert ours["shared"] == entry.get("experts_shared", 0)
        assert ours["router"] == entry.get("router", 0)
    step = read_config(config_path(shared, "stepfun-ai/step3"))
    entry = by_id["stepfun-ai/step3"]
    assert step.active_parameter_count == entry["active_excl_input_embed"]
    assert step.active_parameter_count_with_embedding == entry["active_incl_embed"]
    nas = read_config(config_path(shared, "nvidia/Llama-3_3-Nemotron-Super-49B-v1"))
    attending = sum(g.count for g in nas.groups if g.attention.kind == "softmax")
    assert attending == by_id["nvidia/Llama-3_3-Nemotron-Super-49B-v1"]["attention_layers"]
