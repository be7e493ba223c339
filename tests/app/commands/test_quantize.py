"""`quantize`: the summary, a line for each fall-back, JSON, refusals in words, and the result runs."""

import os

import numpy as np
import pytest

from engine.gguf.reader import GGUFFile
from engine.quantisation.quantise import make_tensor
from tests.helpers.tiny_model import write_tiny_model


@pytest.fixture(scope="module")
def wide_path(tmp_path_factory):
    """With rows that are whole blocks of every type."""
    return write_tiny_model(tmp_path_factory.mktemp("wide") / "wide.gguf", width=256)


def test_summary_and_a_model_that_runs(call, wide_path, tmp_path):
    target = tmp_path / "out.gguf"
    status, out, err = call("quantize", wide_path, target, "q4_k_m", "-t", "2")
    assert status == 0 and err == ""
    for part in ("out.gguf (824 kB, 15% of 5.35 MB)", "1,334,528 in 21 tensors", "Q4_K 615 kB", "4.90 bits"):
        assert part in out
    assert "fallbacks" not in out
    status, out, _ = call("info", target)
    assert status == 0 and "Q4_K" in out
    status, out, _ = call("complete", target, "-p", "the weather", "-n", "4", "--temp", "0", "-t", "1")
    assert status == 0 and out


def test_a_line_for_each_fallback(call, tiny_path, tmp_path):
    status, out, err = call("quantize", tiny_path, tmp_path / "out.gguf", "Q6_K")
    lines = err.splitlines()
    assert status == 0 and len(lines) == 16
    assert lines[0] == ("note: token_embd.weight: rows of 64 are no whole blocks of Q6_K; it gets Q8_0.")
    assert "16 tensors with 100% of the weights" in out


def test_json_and_dry_run(call_json, wide_path, tmp_path):
    target = tmp_path / "out.gguf"
    dry = call_json("quantize", wide_path, target, "Q5_K_S", "--dry-run", "--output-type", "q8_0")
    assert not target.exists() and dry["written"] is False
    found = call_json("quantize", wide_path, target, "Q5_K_S", "--output-type", "q8_0")
    assert found == {**dry, "written": True}
    assert found["file"] == str(target) and found["file_bytes"] == target.stat().st_size
    assert found["source_bytes"] == wide_path.stat().st_size and found["type"] == "Q5_K_S"
    assert found["fallbacks"] == [] and found["fallback_share"] == 0 and found["copied"] is False
    with GGUFFile.open(target) as file:
        assert found["tensors"] == [
            {"name": name, "from": "F32", "to": tensor.type.name, "bytes": tensor.nbytes}
            for name, tensor in file.tensors.items()
        ]
        assert file.tensors["output.weight"].type.name == "Q8_0"
        assert found["parameters"] == sum(tensor.n_elements for tensor in file.tensors.values())
    assert found["bits_per_weight"] == pytest.approx(8 * sum(found["types"].values()) / found["parameters"])


def test_a_dry_run_in_words(call, wide_path, tmp_path):
    status, out, _ = call("quantize", wide_path, tmp_path / "out.gguf", "Q2_K", "--dry-run")
    assert status == 0 and out.startswith("would write:") and list(tmp_path.iterdir()) == []


def test_types_by_option(call_json, wide_path, tmp_path):
    options = ("--embedding-type", "bf16", "--output-type", "F16")
    found = call_json("quantize", wide_path, tmp_path / "out.gguf", "Q4_0", *options)
    types = {tensor["name"]: tensor["to"] for tensor in found["tensors"]}
    assert types["token_embd.weight"] == "BF16" and types["output.weight"] == "F16"


def test_a_quantised_model(call, call_json, wide_path, tmp_path):
    small, again = tmp_path / "small.gguf", tmp_path / "again.gguf"
    assert call("quantize", wide_path, small, "Q8_0")[0] == 0
    status, out, err = call("quantize", small, again, "Q4_K_M")
    assert status == 1 and not out and "small.gguf is quantised already" in err
    assert "F16 or BF16" in err and "--requantize" in err and not again.exists()
    assert call("quantize", small, again, "Q4_K_M", "--requantize")[0] == 0
    status, _, err = call("quantize", small, tmp_path / "copy.gguf", "Q8_0")
    assert status == 0 and "Q8_0 already" in err
    assert (tmp_path / "copy.gguf").read_bytes() == small.read_bytes()


def test_files_that_are_there(call, tiny_path, tmp_path):
    source, link = tmp_path / "in.gguf", tmp_path / "link.gguf"
    source.write_bytes(tiny_path.read_bytes())
    os.link(source, link)
    for target in (source, link):
        for option in ((), ("--replace",)):
            status, _, err = call("quantize", source, target, "Q8_0", *option)
            assert status == 1 and "is the file that is read" in err
    assert source.read_bytes() == tiny_path.read_bytes()
    other = tmp_path / "other.gguf"
    other.write_bytes(b"precious")
    status, _, err = call("quantize", source, other, "Q8_0")
    assert status == 1 and "already there" in err and "--replace" in err
    assert other.read_bytes() == b"precious"
    assert call("quantize", source, other, "Q8_0", "--replace")[0] == 0
    assert other.read_bytes()[:4] == b"GGUF"


def test_refusals(call, tiny_path, tmp_path):
    target = tmp_path / "out.gguf"
    (tmp_path / "text.gguf").write_text("no model at all")
    for source in (tmp_path / "missing.gguf", tmp_path / "text.gguf", tmp_path):
        status, out, err = call("quantize", source, target, "Q8_0")
        assert status == 1 and err.startswith("error: ") and not out
    status, _, err = call("quantize", tiny_path, tmp_path, "Q8_0")
    assert status == 1 and "is a folder" in err
    status, _, err = call("quantize", tiny_path, tmp_path / "no" / "out.gguf", "Q8_0")
    assert status == 1 and "cannot be written" in err
    for wrong in (("Q9",), ("Q8_0", "--output-type", "Q4_K_M"), ("Q8_0", "-t", "0"), ()):
        status, _, err = call("quantize", tiny_path, target, *wrong)
        assert status == 2 and err
    assert [path.name for path in tmp_path.iterdir()] == ["text.gguf"]


def test_a_weight_that_is_no_number(call, tmp_path):
    values = np.ones((128, 64), np.float32)
    values[5, 6] = np.nan
    name = "blk.0.ffn_up.weight"
    source = write_tiny_model(tmp_path / "in.gguf", extra_tensors={name: make_tensor(name, values)})
    status, _, err = call("quantize", source, tmp_path / "out.gguf", "Q8_0")
    assert status == 1 and f"The weight (5, 6) of {name} is nan" in err
    assert [path.name for path in tmp_path.iterdir()] == ["in.gguf"]


def test_ctrl_c_leaves_nothing_behind(call, tiny_path, tmp_path, monkeypatch):
    def interrupt(line, text):
        raise KeyboardInterrupt

    monkeypatch.setattr("app.terminal.ProgressLine.show", interrupt)
    assert call("quantize", tiny_path, tmp_path / "out.gguf", "Q8_0")[0] == 130
    assert list(tmp_path.iterdir()) == []
