"""`convert`: a summary, JSON, files that are there, refusals in words."""

from pathlib import Path

from tests.helpers.family_fixtures import FOLDER


def test_summary_and_notes(call, tmp_path):
    status, out, _ = call("convert", FOLDER / "llama", tmp_path / "x.gguf", "--no-vocabulary")
    assert status == 0
    for part in ("x.gguf", "llama", "36,240 in 21 tensors", "F32", "none"):
        assert part in out
    status, out, _ = call("info", tmp_path / "x.gguf")
    assert status == 0 and "llama" in out


def test_json(call_json, tmp_path):
    path = tmp_path / "x.gguf"
    found = call_json("convert", FOLDER / "gpt2", path, "--no-vocabulary", "--type", "bf16")
    assert found["file"] == str(path) and found["file_bytes"] == path.stat().st_size
    assert found["family"] == "gpt2" and found["name"] == "gpt2" and found["tokens"] == 0
    assert found["tensors"] == 40 and found["parameters"] == 55_152 and found["notices"] == []
    assert set(found["types"]) == {"F32", "BF16"}


def test_a_file_that_is_there_is_replaced_only_if_asked(call, tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(b"precious")
    command = ("convert", FOLDER / "llama", path, "--no-vocabulary")
    status, _, err = call(*command)
    assert status == 1 and "already there" in err and "--replace" in err
    assert path.read_bytes() == b"precious"
    assert call(*command, "--replace")[0] == 0
    assert path.read_bytes()[:4] == b"GGUF"


def test_refusals(call, tmp_path):
    target = tmp_path / "x.gguf"
    for folder, words in (
        (tmp_path / "missing", "does not exist"),
        (tmp_path, "config.json"),
        (Path(__file__), "is no folder"),
        (FOLDER / "llama", "--no-vocabulary"),
    ):
        status, _, err = call("convert", folder, target)
        assert status == 1 and words in err
    status, _, err = call("convert", FOLDER / "llama", tmp_path)
    assert status == 1 and "is a folder" in err
    assert call("convert", FOLDER / "llama", target, "--type", "q9")[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_a_target_in_a_folder_that_is_missing(call, tmp_path):
    status, _, err = call("convert", FOLDER / "llama", tmp_path / "no/x.gguf", "--no-vocabulary")
    assert status == 1 and err.startswith("error: ")
