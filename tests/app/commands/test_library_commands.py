"""`models`, `get` and `--selftest`."""

import pytest

from app import paths, settings
from app.library import download
from app.library.starter import starter
from tests.helpers.tiny_model import write_tiny_model


def test_models_lists_local_and_known_ones(call, call_json, tmp_path):
    (tmp_path / "added").mkdir()
    write_tiny_model(tmp_path / "added" / "added.gguf")
    (tmp_path / "added" / "bad.gguf").write_bytes(b"GGUF")
    kept = settings.Settings(model_folders=(str(tmp_path / "added"),))
    settings.save(kept)
    listed = call_json("models")
    assert {model["file"] for model in listed["local"]} == {
        str(tmp_path / "added" / name) for name in ("added.gguf", "bad.gguf")
    }
    assert [(model["name"], model["here"]) for model in listed["known"]] == [("starter", False)]
    status, out, _ = call("models", tmp_path / "nowhere")
    assert status == 0 and "Tiny llama" in out and "cannot run" in out and "causerie get starter" in out


def test_get_an_unknown_name(call):
    status, _, err = call("get", "nonsense")
    assert status == 1 and "nonsense" in err and "starter" in err


def test_get_fetches_and_prints_the_path(call, monkeypatch):
    def fetch(model, folder, on_progress):
        on_progress(download.DownloadProgress("here", 1, 2, 3.0, ("There: it failed.",)))
        return folder / model.file_name

    monkeypatch.setattr(download, "fetch", fetch)
    status, out, err = call("get", "starter")
    assert (status, out) == (0, f"{paths.models_folder() / starter().file_name}\n")
    assert "There: it failed." in err


def test_a_known_name_stands_for_its_file_once_it_is_here(call, smollm2_path):
    status, _, err = call("tokenize", "starter", "x")
    assert status == 1 and "causerie get starter" in err
    paths.models_folder().mkdir(parents=True)
    (paths.models_folder() / starter().file_name).symlink_to(smollm2_path)
    assert call("tokenize", "starter", "x")[0] == 0


def test_selftest_of_this_installation(call_json):
    report = call_json("--selftest")
    checks = {check["name"]: check for check in report["checks"]}
    assert report["ok"] and all(check["ok"] for check in checks.values())
    assert "compiled" in checks["kernels"]["details"] and "level" in checks["kernels"]["details"]
    assert "cpu" in checks["backends"]["details"] and "platform" in checks["window"]["details"]


def test_selftest_with_a_model(call_json, smollm2_path):
    report = call_json("--selftest", smollm2_path)
    assert report["checks"][-1]["name"] == "model" and "wrote" in report["checks"][-1]["details"]


@pytest.mark.parametrize("what", ["uncompiled", "missing"])
def test_selftest_fails_where_kernels_are_not_compiled(call, monkeypatch, what):
    from app.commands import selftest
    from engine.errors import KernelsError

    def facts():
        if what == "missing":
            raise KernelsError("No kernels were found.")
        return {"cpu_level": "python", "kernels_compiled": False}

    monkeypatch.setattr(selftest, "kernel_facts", facts)
    status, out, _ = call("--selftest")
    assert status == 1 and "FAILED  kernels" in out and "something is wrong" in out


def test_selftest_with_a_damaged_model_fails_and_says_why(call, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    status, out, _ = call("--selftest", tmp_path / "bad.gguf")
    assert status == 1 and "FAILED  model" in out and "bad.gguf" in out
