"""Hub ids, against a local server that speaks the hub's file routes."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest

from ledgerkit.errors import CheckpointError, ConfigError, HubError
from ledgerkit.readers.config import read_config
from ledgerkit.readers.hub import read_hub, read_hub_checkpoint
from tests.hub.server import COMMIT, OLDER, Hub, Repo, serve

CONFIG = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 128,
          "max_position_embeddings": 256, "torch_dtype": "bfloat16"}  # fmt: skip


def stored_tensors() -> dict[str, tuple[int, ...]]:
    """The tensors of ``CONFIG``, by hand."""
    found = {"model.embed_tokens.weight": (128, 64), "model.norm.weight": (64,),
             "lm_head.weight": (128, 64)}  # fmt: skip
    for layer in range(2):
        at = f"model.layers.{layer}."
        found |= {
            at + "input_layernorm.weight": (64,), at + "post_attention_layernorm.weight": (64,),
            at + "self_attn.q_proj.weight": (64, 64), at + "self_attn.k_proj.weight": (32, 64),
            at + "self_attn.v_proj.weight": (32, 64), at + "self_attn.o_proj.weight": (64, 64),
            at + "mlp.gate_proj.weight": (96, 64), at + "mlp.up_proj.weight": (96, 64),
            at + "mlp.down_proj.weight": (64, 96),
        }  # fmt: skip
    return found


def safetensors_file(tensors: dict[str, tuple[int, ...]]) -> bytes:
    header, offset = {}, 0
    for name, shape in tensors.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": list(shape),
                        "data_offsets": [offset, offset + size]}  # fmt: skip
        offset += size
    packed = json.dumps(header).encode()
    return struct.pack("<Q", len(packed)) + packed + bytes(offset)


@pytest.fixture
def hub() -> Iterator[Hub]:
    state = Hub()
    server = serve(state)
    yield state
    state.release.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def read(hub: Hub, tmp_path: Path):
    """``read_hub`` with the local endpoint and an empty cache."""

    def call(ref: str, revision: str | None = None, function=read_hub, **options):
        options = {"endpoint": hub.endpoint, "cache_dir": tmp_path / "cache", "timeout_s": 2.0,
                   **options}  # fmt: skip
        return function(ref, revision, **options)

    return call


def add(
    hub: Hub, name: str = "org/tiny", fault: str = "", token: str | None = None, **files: bytes
) -> Repo:
    content = {key.replace("__", "."): value for key, value in files.items()}
    content.setdefault("config.json", json.dumps(CONFIG).encode())
    older = {"config.json": json.dumps({**CONFIG, "num_hidden_layers": 1}).encode()}
    hub.repos[name] = Repo({COMMIT: content, OLDER: older}, fault, token)
    return hub.repos[name]


def test_a_model_and_its_commit(hub: Hub, read):
    add(hub, "Org/Tiny-1B")
    model = read("Org/Tiny-1B")
    assert model == read_config(CONFIG, "tiny-1b", model.source)
    assert model.slug == "tiny-1b"
    assert model.source == f"{hub.endpoint}/Org/Tiny-1B/blob/{COMMIT}/config.json"
    assert {path for _, path, _ in hub.requests} == {"/Org/Tiny-1B/resolve/main/config.json"}


@pytest.mark.parametrize(
    ("ref", "revision"),
    [("org/tiny", "v1"), ("org/tiny@v1", None), ("org/tiny", OLDER), ("org/tiny@v1", "v1")],
)
def test_a_revision_is_read_and_recorded(ref: str, revision: str | None, hub: Hub, read):
    add(hub)
    model = read(ref, revision)
    assert model.num_hidden_layers == 1
    assert f"/blob/{OLDER}/" in model.source


def test_load_model_takes_hub_ids(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from ledgerkit.catalog.models import load_model

    add(hub)
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    assert load_model("org/tiny@v1").num_hidden_layers == 1


def test_the_token_is_sent(hub: Hub, read):
    add(hub, token="hf_secret")  # noqa: S106
    assert read("org/tiny", token="hf_secret").num_hidden_layers == 2  # noqa: S106
    assert {token for _, _, token in hub.requests} == {"Bearer hf_secret"}
    with pytest.raises(HubError, match="no repository org/tiny, or it is private"):
        read("org/tiny", token="hf_wrong", cache_dir=None)  # noqa: S106


REFUSALS = {
    "no such repository": ("org/none", {}, "no repository org/none"),
    "no such revision": ("org/tiny@v9", {}, "no such revision"),
    "401": ("org/tiny", {"fault": "401"}, "refused config.json .*HTTP 401"),
    "gated": ("org/tiny", {"fault": "gated"}, "is gated"),
    "500": ("org/tiny", {"fault": "500"}, "refused config.json .*HTTP 500"),
    "portal": ("org/tiny", {"fault": "portal"}, "no hub"),
    "html": ("org/tiny", {"config__json": b"<!doctype html><title>Hub</title>"}, "a web page"),
    "binary": ("org/tiny", {"config__json": b"\xff\xfe\x00"}, "not UTF-8"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_say_what_is_wrong(case: str, hub: Hub, read):
    ref, options, message = REFUSALS[case]
    add(hub, **options)
    with pytest.raises(HubError, match=message):
        read(ref)


def test_a_repository_without_config_is_named(hub: Hub, read):
    add(hub).files[COMMIT].pop("config.json")
    with pytest.raises(HubError, match=r"has no config\.json"):
        read("org/tiny")


def test_broken_configs_are_config_errors(hub: Hub, read):
    add(hub, config__json=b'{"model_type": "llama"')
    with pytest.raises(ConfigError, match="not valid JSON"):
        read("org/tiny")


@pytest.mark.parametrize("ref", ["tiny", "a/b/c", "org/", "org/ti ny", "../etc", "org/tiny@"])
def test_what_is_no_hub_id(ref: str):
    with pytest.raises(HubError, match="no hub id"):
        read_hub(ref)


def test_two_revisions_are_refused():
    with pytest.raises(HubError, match="two different revisions"):
        read_hub("org/tiny@v1", "v2")


def test_a_silent_hub_is_given_up(hub: Hub, read):
    add(hub, fault="silent")
    start = time.monotonic()
    with pytest.raises(HubError, match=r"cannot be reached.*Timeout"):
        read("org/tiny", timeout_s=0.3)
    assert time.monotonic() - start < 5


def test_a_hub_that_falls_silent_in_the_middle(hub: Hub, read, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    add(hub, fault="silent body")
    with pytest.raises(HubError, match="cannot be reached"):
        read("org/tiny")


def test_a_hub_that_is_not_there(read):
    with pytest.raises(HubError, match="cannot be reached"):
        read("org/tiny", endpoint="http://127.0.0.1:9")


def test_the_cache_serves_when_the_hub_is_gone(hub: Hub, read):
    add(hub)
    before = read("org/tiny")
    hub.repos["org/tiny"].fault = "500"
    assert read("org/tiny") == before


SCRIPT = """
import sys
from ledgerkit.readers.hub import read_hub
from ledgerkit.errors import HubError
try:
    model = read_hub("org/tiny")
    print(model.num_hidden_layers, model.source)
except HubError as error:
    print("HubError", error)
"""


def run(root: Path, **environment: str) -> str:
    base = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    done = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], cwd=root, check=True,
                          env={**base, **environment}, capture_output=True, text=True,
                          timeout=120)  # fmt: skip
    assert done.stderr == ""  # no progress bars
    return done.stdout


def test_the_environment_is_honoured(hub: Hub, root: Path, tmp_path: Path):
    """Endpoint, token, cache and offline mode, as the client documents them."""
    add(hub, token="hf_env")  # noqa: S106
    there = {"HF_ENDPOINT": hub.endpoint, "HF_HUB_CACHE": str(tmp_path / "cache"),
             "HF_HOME": str(tmp_path / "home")}  # fmt: skip
    offline = run(root, HF_HUB_OFFLINE="1", **there)
    assert offline.startswith("HubError config.json of org/tiny is not in the cache")
    assert hub.requests == []
    online = run(root, **there, HF_TOKEN="hf_env")  # noqa: S106
    assert online == f"2 {hub.endpoint}/org/tiny/blob/{COMMIT}/config.json\n"
    assert (tmp_path / "cache").is_dir()
    hub.requests.clear()
    assert run(root, HF_HUB_OFFLINE="1", **there).startswith("2 ")
    assert hub.requests == []


def test_the_client_may_be_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(HubError, match=r"ledgerkit-llm\[hub\]"):
        read_hub("org/tiny")


def test_a_checkpoint_by_its_headers_alone(hub: Hub, read):
    tensors = stored_tensors()
    names = sorted(tensors)
    parts = {"model-00001-of-00002.safetensors": names[:10],
             "model-00002-of-00002.safetensors": names[10:]}  # fmt: skip
    repo = add(hub)
    # so large that only a part of a file can be asked for
    tensors["model.embed_tokens.weight"] = tensors["lm_head.weight"] = (50_000, 64)
    content = repo.files[COMMIT]
    content["config.json"] = json.dumps({**CONFIG, "vocab_size": 50_000}).encode()
    for file, part in parts.items():
        content[file] = safetensors_file({name: tensors[name] for name in part})
    mapped = {name: file for file, part in parts.items() for name in part}
    content["model.safetensors.index.json"] = json.dumps({"weight_map": mapped}).encode()
    found = read("org/tiny", function=read_hub_checkpoint)
    assert found.agrees
    assert found.bytes == found.model.weight_bytes > 12e6
    assert found.files == tuple(parts)
    assert hub.sent_bytes < 300_000
    assert all(f"/resolve/{COMMIT}/" in path for _, path, _ in hub.requests if "model-" in path)


def test_a_single_file_and_none_at_all(hub: Hub, read):
    repo = add(hub)
    with pytest.raises(HubError, match=r"has no model\.safetensors"):
        read("org/tiny", function=read_hub_checkpoint)
    repo.files[COMMIT]["model.safetensors"] = safetensors_file(stored_tensors())
    assert read("org/tiny", function=read_hub_checkpoint).agrees
    repo.files[COMMIT]["model.safetensors"] = b"<html>not here</html>" * 10
    with pytest.raises(CheckpointError, match="cannot be parsed"):
        read("org/tiny", function=read_hub_checkpoint)


def test_an_index_that_lies_is_refused(hub: Hub, read):
    repo = add(hub)
    repo.files[COMMIT] |= {
        "a.safetensors": safetensors_file({"model.norm.weight": (64,)}),
        "model.safetensors.index.json": json.dumps(
            {"weight_map": {"model.norm.weight": "a.safetensors", "x": "a.safetensors"}}
        ).encode(),
    }
    with pytest.raises(CheckpointError, match="disagree"):
        read("org/tiny", function=read_hub_checkpoint)
    repo.files[COMMIT]["model.safetensors.index.json"] = json.dumps(
        {"weight_map": {"x": "../../secrets.safetensors"}}
    ).encode()
    with pytest.raises(CheckpointError, match="of the same directory"):
        read("org/tiny", function=read_hub_checkpoint, cache_dir=None)
