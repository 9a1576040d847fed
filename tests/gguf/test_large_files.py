"""Huge, sparse and split files."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest

from ledgerkit.errors import CheckpointError
from ledgerkit.readers.gguf import read_gguf, read_gguf_file
from tests.gguf import build, raw

MEASURE = """
import json, resource, sys, time
from ledgerkit.readers.gguf import read_gguf
start = time.perf_counter()
model = read_gguf(sys.argv[1])
seconds = time.perf_counter() - start
try:  # ru_maxrss of a new process starts at that of its parent, here of the whole test run
    status = open("/proc/self/status").read()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
except FileNotFoundError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([seconds, model.parameter_count, model.weight_bytes, peak]))
"""


def test_a_sparse_file_of_400_gigabytes(tmp_path: Path, root: Path):
    """Llama-3.1-405B in q8_0: 405,853,388,800 parameters."""
    plan = build.decoder("llama", hidden=16384, layers=126, heads=128, kv_heads=8, head_dim=128,
                         width=53248)  # fmt: skip
    for name in ("token_embd.weight", "output.weight"):
        plan.tensors[name] = (16384, 128256)
    packed, size = raw.of_plan(plan, build.Type.Q8_0)
    path = tmp_path / "llama-3.1-405b-q8_0.gguf"
    path.write_bytes(packed)
    with path.open("r+b") as file:
        file.truncate(size)
    assert path.stat().st_size > 400e9
    done = subprocess.run([sys.executable, "-c", MEASURE, path], cwd=root, check=True,
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    seconds, parameters, size_bytes, rss_bytes = json.loads(done.stdout)
    assert parameters == 405_853_388_800
    norms = (2 * 126 + 1) * 16384
    assert size_bytes == (parameters - norms) * 34 / 32 + norms * 4
    assert seconds < 1
    assert rss_bytes < 200e6


def split_files(where: Path, plan: build.Plan) -> list[Path]:
    """Let the ``gguf`` package split a file into parts of five tensors."""
    writer = gguf.GGUFWriter(where / "tiny.gguf", plan.architecture, split_max_tensors=5)
    for key, value in plan.keys.items():
        build._add(writer, f"{plan.architecture}.{key}", value)
    for name, ne in plan.tensors.items():
        writer.add_tensor(name, np.zeros(tuple(reversed(ne)), dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(where.glob("tiny-*-of-*.gguf"))


def test_a_split_model_is_read_from_any_part(tmp_path: Path):
    plan = build.qwen3()
    parts = split_files(tmp_path, plan)
    assert len(parts) == -(-len(plan.tensors) // 5)
    models = {read_gguf(part).weight_bytes for part in (parts[0], parts[-1], str(parts[2]))}
    elements = sum(int(np.prod(ne)) for ne in plan.tensors.values())
    assert models == {2 * elements}
    file = read_gguf_file(parts[0])
    assert {tensor.name for tensor in file.tensors} == plan.tensors.keys()
    assert file.file_bytes == sum(part.stat().st_size for part in parts)
    assert read_gguf(parts[0]).slug == "tiny"


def test_parts_that_do_not_belong_together_are_refused(tmp_path: Path):
    parts = split_files(tmp_path, build.qwen3())
    shutil.copy(parts[1], parts[2])
    with pytest.raises(CheckpointError, match="contradicts the name"):
        read_gguf(parts[0])
    parts[2].unlink()
    with pytest.raises(CheckpointError, match=r"1 of \d+ parts are missing") as caught:
        read_gguf(parts[0])
    assert parts[2].name in str(caught.value)


def test_a_renamed_part_is_no_whole_model(tmp_path: Path):
    parts = split_files(tmp_path, build.qwen3())
    alone = parts[0].rename(tmp_path / "alone.gguf")
    with pytest.raises(CheckpointError, match="contradicts the name"):
        read_gguf(alone)
    absurd = tmp_path / "x-00003-of-00002.gguf"
    absurd.write_bytes(b"")
    with pytest.raises(CheckpointError, match="a part that cannot be"):
        read_gguf(absurd)


def test_a_tensor_in_two_parts_is_refused(tmp_path: Path):
    for number in range(2):
        pairs = [raw.pair("split.no", 2, struct.pack("<H", number)),
                 raw.pair("split.count", 2, struct.pack("<H", 2))]  # fmt: skip
        packed = raw.header(pairs, [raw.tensor("w", (16,), 1, 0)], data=32)
        (tmp_path / f"x-0000{number + 1}-of-00002.gguf").write_bytes(packed)
    with pytest.raises(CheckpointError, match="occurs in two parts"):
        read_gguf_file(tmp_path / "x-00001-of-00002.gguf")
