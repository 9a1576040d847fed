"""What a hostile user typed into verbs, files and commands: each ends in a full error."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import subprocess
import sys

import pytest

import ledgerkit as lk
from ledgerkit.__main__ import main
from ledgerkit.errors import LedgerError
from tests.house.refusal import DEVICE, INF, MODEL, NAN, SHORT, WORK, refused, simulated

# verbs -----------------------------------------------------------------------------------------

POINT = {"model": MODEL, "hardware": DEVICE, "workload": SHORT}


def books():
    return lk.ledger(MODEL, DEVICE, workload=SHORT)


def room(**options):
    return lk.capacity(MODEL, DEVICE, **options)


def loaded(**options):
    return lk.steady_state(MODEL, DEVICE, workload=WORK, **options)


def swept(**options):
    return lk.sweep(**{"model": MODEL, "hardware": DEVICE, "progress": False, **SHORT, **options})


MEASURED = {"prompt_tokens": 8, "output_tokens": 8, "concurrency": 1}


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: lk.ledger("a" * 5000, DEVICE, workload=SHORT), "no built-in model"),
        (lambda: lk.ledger(MODEL, DEVICE, 5, SHORT), "deployment"),
        (lambda: lk.ledger(MODEL, DEVICE, {5: 1}, SHORT), "fields of a deployment"),
        (lambda: lk.ledger(MODEL, DEVICE, None, {5: 1}), "fields of a workload"),
        (lambda: lk.ledger(MODEL, DEVICE, None, SHORT, calibration=5), "calibration"),
        (lambda: books().at(5), "workload"),
        (lambda: books().chart(zz=1), "'zz'"),
        (lambda: books().chart(table=1), "'table'"),
        (lambda: books().chart(kind=None), "kind of chart"),
        (lambda: lk.compare([books()]).chart(zz=1), "'zz'"),
        (lambda: lk.compare(None), "list of points"),
        (lambda: lk.compare(5), "list of points"),
        (lambda: lk.compare([]), "at least one point"),
        (lambda: lk.compare([{5: 1, "x": 2}]), "unknown keys"),
        (lambda: lk.compare([POINT], trail=("prompt_tokens", [True])), "trail"),
        (lambda: lk.compare([POINT], trail=("prompt_tokens", [10**400])), "trail"),
        (lambda: loaded(prefill_workers=NAN, decode_workers=1), "workers"),
        (lambda: loaded(prefill_workers="2", decode_workers="x"), "workers"),
        (lambda: loaded(prefill_workers=-2, decode_workers=1), "workers"),
        (lambda: loaded(prefill_workers=1.5, decode_workers=1), "workers"),
        (lambda: loaded(prefill_workers=1, decode_workers=INF), "workers"),
        (lambda: loaded(prefill_workers=10**400, decode_workers=1), "workers"),
        (lambda: loaded(prefix_hit_rate="x"), "prefix_hit_rate"),
        (lambda: loaded(prefix_hit_rate=NAN), "prefix_hit_rate"),
        (lambda: loaded(calibration=5), "calibration"),
        (lambda: simulated(calibration=5), "calibration"),
        (lambda: room(workload="x"), "workload"),
        (lambda: room(pool_bytes="x"), "pool_bytes"),
        (lambda: room(pool_bytes=0), "pool_bytes"),
        (lambda: room().ideal_bytes(-1), "tokens"),
        (lambda: room().ideal_bytes(1, "zz"), "devices"),
        (lambda: room().swap_blocks("x"), "swap_bytes"),
        (lambda: room().swap_blocks(-1), "swap_bytes"),
        (lambda: room().max_concurrency(0), "tokens"),
        (lambda: room().max_concurrency(NAN), "tokens"),
        (lambda: room().reserved_bytes("x"), "tokens"),
        (lambda: room().fits(0), "tokens"),
        (lambda: room().transfer_bytes(-1), "prompt_tokens"),
        (lambda: room().llamacpp(zz=1), "'zz'"),
        (lambda: lk.cache_table(None, [1]), "models"),
        (lambda: lk.cache_table(MODEL, [1]), "models"),
        (lambda: lk.cache_table([MODEL], 5), "contexts"),
        (lambda: lk.cache_table([MODEL], ["x"]), "contexts"),
        (lambda: lk.cache_table([MODEL], [NAN]), "contexts"),
        (lambda: lk.cache_table([MODEL], [10**9]), "no model reaches"),
        (lambda: lk.calibrate(None, MODEL, DEVICE), "measured points"),
        (lambda: lk.calibrate("x", MODEL, DEVICE), "measured points"),
        (lambda: lk.calibrate([5], MODEL, DEVICE), "measured points"),
        (lambda: lk.calibrate([], MODEL, DEVICE), "nothing to calibrate on"),
        (lambda: lk.calibrate(MEASURED | {"tpot_s": "x"}, MODEL, DEVICE), "tpot_s"),
        (lambda: lk.calibrate(MEASURED | {"tpot_s": 0.01, "concurrency": NAN}, MODEL, DEVICE),
         "concurrency"),
        (lambda: lk.calibrate(MEASURED | {"tpot_s": 0.01}, MODEL, DEVICE, provenance=5),
         "provenance"),
        (lambda: room().ideal_bytes(10**400), "tokens"),
        (lambda: lk.load_model(MODEL).cache_bytes(10**400), "context"),
        (lambda: swept(price_source=["x"]), "price"),
        (lambda: swept(threads=10**400), "threads"),
        (lambda: swept(calibration=5), "calibration"),
        (lambda: swept(run_on="dask"), "client"),
        (lambda: swept(prompt_tokens=NAN), "prompt_tokens"),
        (lambda: lk.set_language("fr"), "unknown language"),
        (lambda: lk.set_language(["zh"]), "unknown language"),
        (lambda: lk.set_language(None), "language"),
    ],
)  # fmt: skip
def test_verbs(call, match):
    refused(call, match)


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("n_parallel", [0, 257, "x", None, True, 1.5]),
        ("n_ctx", [-1, 1 << 33, "x", None, False, 1.5]),
        ("n_batch", [0, 1 << 31, "a", None, True]),
        ("n_ubatch", [-1, 1 << 31, "a", None, True, 1.5]),
        ("unified", ["no", 1, None]), ("swa_full", ["x"]), ("flash_attn", [None, 0]),
        ("windowed", ["x", 1]), ("latent", ["x", None, ["latent"]]),
    ],
)  # fmt: skip
def test_settings_of_llama_cpp(setting, values):
    for value in values:
        error = refused(lambda value=value: room().llamacpp(**{setting: value}), f"^{setting} ")
        assert setting in error.fix
        assert "ideal bytes" not in error.fix


def test_the_compute_buffer_is_that_of_a_cpu():
    """On a GPU llama.cpp splits its graph: no buffer is said for one."""
    layout = {"engine": "llama.cpp"}
    accelerated = lk.capacity("qwen3-8b", DEVICE, layout).llamacpp(n_ctx=4096)
    assert accelerated.compute_bytes is None
    assert not any("compute buffer" in line for line in accelerated.lines)
    processor = lk.Hardware(slug="processor", family="cpu", memory_bytes=64 * 10**9,
                            memory_bytes_per_s=1e11, peak_flop_per_s={"bf16": 1e12})  # fmt: skip
    plain = lk.capacity("qwen3-8b", processor, layout).llamacpp(n_ctx=4096)
    assert "compute buffer" in plain.lines[-1]
    assert plain.buffers == accelerated.buffers


def test_a_pool_that_is_none_is_said_in_words():
    assert "no pool, " in repr(lk.capacity("llama-3.1-70b", DEVICE))


def test_fields_of_a_workload_do_wherever_a_workload_does():
    assert books().at({"prompt_tokens": 16, "output_tokens": 8}).workload.prompt_tokens == 16
    assert room(workload=SHORT).max_model_len == 16


# files and commands ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("deep.json", "[" * 50_000, "nested too deeply"),
        ("digits.json", '{"a": ' + "1" * 5000 + "}", "cannot be read"),
        ("broken.json", '{"a": ', "broken JSON"),
        ("kind.json", '{"metadata": 5, "metrics": 5}', "unknown result format"),
    ],
)
def test_results_of_load_tests(tmp_path, name, content, match):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    refused(lambda: lk.loadtest.read(path), match)


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (5, "columns"), ({"zz": "ctx"}, "no columns of ours"), ({"itl_s": 5}, "itl_s"),
        ({"itl_s": ("ctx", "x")}, "factor"), ({"itl_s": "zz"}, "does not have"),
        ({5: "ctx"}, "no columns of ours"), ({"itl_s": "ctx"}, "not a number"),
    ],
)  # fmt: skip
def test_columns_of_plain_files(tmp_path, columns, match):
    path = tmp_path / "rows.csv"
    path.write_text("ctx,itl\nx,1\n", encoding="utf-8")
    refused(lambda: lk.loadtest.read(path, columns=columns), match)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: lk.loadtest.read("\0"), "null byte"),
        (lambda: lk.loadtest.read(None), "path"),
        (lambda: lk.Calibration.load("nowhere.json"), "calibration"),
        (lambda: lk.load_model(pathlib.Path("\0")), "null byte"),
        (lambda: lk.load_model(None), "model reference"),
        (lambda: lk.save_figure(books().chart(), 5), "path"),
        (lambda: lk.save_figure(books().chart(), "figure.zz"), "format"),
        (lambda: lk.save_figure(books().chart(), "figure.svg", scale="x"), "scale"),
        (lambda: lk.save_figure(5, "figure.svg"), "no chart"),
        (lambda: books().chart(language="fr"), "language"),
        (lambda: books().chart(theme="zz"), "theme"),
        (lambda: books().chart(theme=[1]), "theme"),
        (lambda: books().chart(theme=0), "theme"),
        (lambda: lk.widgets.ConfigDrop(zz=1), "'zz'"),
        (lambda: lk.widgets.ConfigDrop(5), "config"),
    ],
)
def test_paths_and_options(call, match):
    refused(call, match)


@pytest.mark.parametrize(
    "command",
    [["figures", "--out", "{}/taken/out"], ["figures", "--html", "{}/taken/x.html"],
     ["report", MODEL, "--out", "{}/taken/x.md"]],
)  # fmt: skip
def test_places_that_cannot_be_made(tmp_path, capsys, command):
    (tmp_path / "taken").write_text("a file")
    assert main([word.format(tmp_path) for word in command]) == 2
    told = capsys.readouterr().err
    assert "cannot read or write there" in told
    assert "Fix: " in told


@pytest.mark.parametrize(
    "content",
    [b"root:x:0:0", b"", b"[]", b'{"a": 1}', b"\xff\xfe\x00",
     b'{"cells": 5, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'],
)  # fmt: skip
def test_files_that_are_no_notebook(tmp_path, capsys, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert main(["figures", "--out", str(tmp_path / "out"), "--notebook", str(path)]) == 2
    assert "this file is no valid notebook (given: " in capsys.readouterr().err


def test_a_terminal_without_the_signs_shows_the_report():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "ledgerkit", "report", MODEL]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert b"?" in done.stdout


# configs and devices ---------------------------------------------------------------------------

CONFIG = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
MINE = {
    "slug": "mine", "memory_bytes": 80_000_000_000, "memory_bytes_per_s": 3e12,
    "peak_flop_per_s": {"bf16": 1e15},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"hidden_size": NAN}, "hidden_size must be a whole number"),
        ({"hidden_size": None}, "hidden_size must be a whole number"),
        ({"hidden_size": -1}, "hidden_size is out of range"),
        ({"tie_word_embeddings": NAN}, "tie_word_embeddings must be true or false"),
        ({"model_type": ["x"]}, "model_type"),
        ({"architectures": 5}, "architectures"),
        ({"torch_dtype": "zz"}, "torch_dtype"),
        ({"quantization_config": 5}, "quantization_config"),
        ({"zz": 5}, "zz"),
        ({5: 5}, "5"),
    ],
)
def test_configs(change, match):
    refused(lambda: lk.load_model(CONFIG | change), match)
    if "model_type" not in change and 5 not in change:
        refused(lambda: lk.load_model(CONFIG).replace(**change), match)


def test_fields_that_do_not_go_together_are_named():
    model = lk.load_model("qwen3-30b-a3b")
    error = refused(lambda: model.replace(num_experts_per_tok=999), "num_experts_per_tok 999")
    assert error.given == {"num_experts": 128, "num_experts_per_tok": 999}


@pytest.mark.parametrize(
    ("content", "match"),
    [("[" * 50_000, "nested too deeply"), ('{"a": ' + "1" * 5000 + "}", "cannot be read"),
     ("", "not valid JSON"), ('{"a": NaN}', "number that is none"), ("[]", "object"),
     ('{"a": 1, "a": 2}', "twice")],
)  # fmt: skip
def test_config_files(tmp_path, content, match):
    path = tmp_path / "config.json"
    path.write_text(content, encoding="utf-8")
    refused(lambda: lk.load_model(path), match)
    refused(lambda: lk.load_model(tmp_path / "nowhere"), "cannot be read")


def test_a_config_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8-sig")
    assert lk.load_model(path).parameter_count == lk.load_model(CONFIG).parameter_count


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"peak_flop_per_s": {"bf16": -1}}, r"peak_flop_per_s\['bf16'\]"),
        ({"peak_flop_per_s": {"bf16": NAN}}, r"peak_flop_per_s\['bf16'\]"),
        ({"peak_flop_per_s": {"zz": 1e15}}, "unknown dtype"),
        ({"peak_flop_per_s": {}}, "peak_flop_per_s"),
        ({"peak_flop_per_s": 5}, "must be a dict"),
        ({"peak_flop_per_s": None}, "must be a dict"),
        ({"peak_flop_per_s": [5]}, "must be a dict"),
        ({"peak_flop_per_s": {"fp8": 1e15}}, "multiplies in none of .*bf16"),
        ({"slug": ""}, "slug"),
        ({"memory_bytes": None}, "memory_bytes"),
        ({"memory_bytes": True}, "memory_bytes"),
        ({5: 5}, "fields of a device"),
    ],
)
def test_devices(change, match):
    refused(lambda: lk.ledger(MODEL, MINE | change, workload=SHORT), match)


@pytest.mark.parametrize("value", [None, {}, [], {1: 2}])
def test_a_value_of_another_kind_is_shown_as_it_was_given(value):
    error = refused(lambda: lk.Workload(prompt_tokens=value, output_tokens=1), "prompt_tokens")
    assert f"given: {value!r}" in str(error)
    assert f"given: {value!r}" in str(refused(lambda: lk.Deployment(tp=value), "tp"))


def test_copies_of_errors_say_the_same():
    """A copy goes the way of pickle, between the processes of a cluster."""
    for call, word in ((lambda: lk.Deployment(tp=None), "tp"), (lk.Workload, "prompt_tokens")):
        error = refused(call, word)
        again = copy.copy(error)
        assert (type(again), str(again)) == (type(error), str(error))
    assert "given" not in str(copy.copy(LedgerError("wrong")))


@pytest.mark.parametrize("layout", ["nope", "fp8_ds_mla", None, 5, ["bf16"]])
def test_cache_layouts(layout):
    refused(lambda: lk.load_model(MODEL).kv_bytes_per_token(layout), "layout")
