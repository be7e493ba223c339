"""`causerie info` as a process of its own, on damaged files: one error, soon, and without memory.

The same files and many more are opened in this process by `tests/engine/gguf`.
"""

import os
import struct
import subprocess
import sys

import pytest

from tests.helpers.raw_gguf import (
    ARRAY,
    BOOL,
    F32,
    I8,
    STRING,
    UINT8,
    UINT32,
    array,
    entry,
    gguf,
    string,
    tensor,
    uint32,
)
from tests.helpers.run_app import ROOT
from tests.helpers.tiny_model import write_tiny_model

if not hasattr(os, "wait4"):
    pytest.skip("this system does not tell what a process used", allow_module_level=True)

MEMORY_LIMIT = 64 << 20
TIME_LIMIT = 1.0


def nested(depth):
    value = array(UINT8, 0)
    for _ in range(depth):
        value = array(ARRAY, 1, value)
    return value


DAMAGED = {
    "counts": b"GGUF" + struct.pack("<IQQ", 3, 2**64 - 1, 0),
    "string": gguf([entry(b"general.name", STRING, string(b"abc", 2**63))]),
    "array": gguf([entry(b"tokens", ARRAY, array(STRING, 2**62))]),
    "empty strings": gguf([entry(b"tokens", ARRAY, array(STRING, 2**21))]).ljust(40 << 20, b"\0"),
    "truth values": gguf([entry(b"flags", ARRAY, array(BOOL, 60 << 20, b"\2" * (60 << 20)))]),
    "long text before a fault": gguf(
        [entry(b"a", STRING, string(b"x" * (29 << 20))), entry(b"b", 2**32 - 1, b"")]
    ),
    "vast texts": gguf([entry(key, STRING, string(b"x" * (20 << 20))) for key in (b"a", b"b", b"c")]),
    "nested": gguf([entry(b"deep", ARRAY, nested(5000))]),
    "alignment": gguf([entry(b"general.alignment", UINT32, uint32(0))]),
    "dimensions": gguf(tensors=[tensor(b"t", [1], n_dims=2**32 - 1)]),
    "zero": gguf(tensors=[tensor(b"t", [1, 0])]),
    "product": gguf(tensors=[tensor(b"t", [4, 1073741823, 1073741825, 1], F32)]),
    "sum": gguf(tensors=[tensor(name, [0x7FFFFFFFFFFFFFC0], I8) for name in (b"a", b"b")]),
    "offset": gguf(tensors=[tensor(b"t", [8], offset=2**64 - 32)]),
    "type": gguf([entry(b"key", 2**32 - 1, b"")]),
    "twice": gguf(tensors=[tensor(b"t", [8]), tensor(b"t", [8], offset=32)], data=b"\0" * 64),
    "parts": gguf([entry(b"split.count", UINT32, uint32(3))]),
    "version": gguf(version=4),
    "web page": b"<!DOCTYPE html>",
    "nothing": b"",
}


def run_info(path):
    """(exit status, stdout, stderr, seconds of processor time, most bytes resident)."""
    command = [sys.executable, "-m", "app", "info", str(path), "--backend", "fake"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    unit = 1 if sys.platform == "darwin" else 1024
    return process.returncode, out, err, used.ru_utime + used.ru_stime, used.ru_maxrss * unit


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """Time and memory of the command for a sound file: what the program takes itself."""
    status, out, _, seconds, peak = run_info(write_tiny_model(tmp_path_factory.mktemp("sound") / "tiny.gguf"))
    assert status == 0 and "Tiny llama" in out
    return seconds, peak


@pytest.mark.parametrize("name", DAMAGED)
def test_one_error_soon_and_without_memory(tmp_path, usual, name):
    path = tmp_path / "damaged.gguf"
    path.write_bytes(DAMAGED[name])
    status, out, err, seconds, peak = run_info(path)
    assert (status, out) == (1, "")
    lines = err.splitlines()
    assert len(lines) == 2 and lines[0].startswith("error: damaged.gguf") and lines[1]
    assert seconds < usual[0] + TIME_LIMIT
    assert peak < usual[1] + MEMORY_LIMIT
