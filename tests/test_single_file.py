"""The single file, built once for all tests here and run as by a stranger: elsewhere, with nothing around."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QImage

import app
from app.ui.theme import LIGHT
from engine.kernels.cpu_level import supported_levels
from tests.helpers.run_app import run_app

ROOT = Path(__file__).parents[1]
BUILD = [sys.executable, str(ROOT / "packaging" / "build.py")]
LARGEST_BYTES = 120_000_000

LIST_CONTENTS = """
import json, sys
from PyInstaller.archive.readers import CArchiveReader
archive = CArchiveReader(sys.argv[1])
(modules,) = (name for name in archive.toc if name.startswith("PYZ"))
print(json.dumps([list(archive.toc), list(archive.open_embedded_archive(modules).toc)]))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),  # the build downloads Qt on a fresh machine
    pytest.mark.skipif(sys.platform != "linux", reason="the single file is proven on Linux only"),
]


@pytest.fixture(scope="session")
def built() -> Path:
    """Made again only where something that goes into it has changed."""
    answer = subprocess.run(BUILD, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return ROOT / "dist" / "causerie"


@pytest.fixture(scope="session")
def contents(built: Path) -> tuple[set[str], set[str]]:
    """Names of the files and of the Python modules inside."""
    python = ROOT / "build" / "package" / "venv" / "bin" / "python"
    answer = subprocess.run([python, "-c", LIST_CONTENTS, built], capture_output=True, text=True, check=True)
    files, modules = json.loads(answer.stdout)
    return set(files), set(modules)


class Elsewhere:
    """A folder with the program alone; what is started there has an empty environment and its own TMPDIR."""

    def __init__(self, folder: Path, built: Path) -> None:
        self.program = Path(shutil.copy(built, folder / "causerie"))
        self.unpacked = folder / "tmp"
        self.unpacked.mkdir()
        self.environment = {"HOME": str(folder), "TMPDIR": str(self.unpacked)}
        self.options: dict[str, Any] = {"cwd": folder, "stdin": subprocess.DEVNULL, "encoding": "utf-8"}

    def run(self, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [self.program, *arguments]
        given = {**self.environment, **environment}
        return subprocess.run(
            command, env=given, capture_output=True, timeout=120, check=False, **self.options
        )

    def start(self, *arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
        given = {**self.environment, **environment}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen([self.program, *arguments], env=given, **pipes, **self.options)


@pytest.fixture
def elsewhere(tmp_path: Path, built: Path) -> Elsewhere:
    return Elsewhere(tmp_path, built)


@pytest.fixture
def model(tmp_path: Path, smollm2_path: Path) -> Path:
    folder = tmp_path / "fôlder with spaces"
    folder.mkdir()
    return Path(shutil.copy(smollm2_path, folder / "starter model.gguf"))


def test_it_is_one_file_of_bearable_size(built):
    assert built.is_file()
    assert 20_000_000 < built.stat().st_size <= LARGEST_BYTES


def test_nothing_changed_means_nothing_is_built(built):
    before = built.stat().st_mtime_ns
    answer = subprocess.run(BUILD, capture_output=True, text=True, check=True)
    assert "up to date" in answer.stdout
    assert built.stat().st_mtime_ns == before


def test_the_kernels_of_every_level_and_their_runtime_are_inside(contents):
    files, _ = contents
    exporting = {
        path.stem
        for path in (ROOT / "engine/kernels/source").glob("*.py")
        if "# pythran export" in path.read_text(encoding="utf-8")
    }
    assert {"rms_norm", "attention"} <= exporting
    compiled = {
        (path.parts[-2], path.name.split(".")[0]) for path in map(Path, files) if "compiled" in path.parts
    }
    levels = {path.name for path in (ROOT / "engine/kernels/compiled").iterdir()} - {"checked"}
    assert compiled == {(level, kernel) for level in levels for kernel in exporting}
    assert {level.replace("-", "_") for level in supported_levels()} <= levels
    assert [name for name in files if Path(name).name.startswith("libgomp")]


def test_development_tools_and_unused_parts_of_qt_are_not_inside(contents):
    files, modules = contents
    assert {"engine.model", "app.ui.main_window", "PySide6.QtWidgets"} <= modules | {
        name.split(".")[0].replace("/", ".") for name in files
    }
    unwanted = ("pythran", "pytest", "setuptools", "pip", "hf_xet", "mypy", "PyInstaller", "tkinter", "tests")
    assert [name for name in modules | files if name.split(".")[0].split("/")[0] in unwanted] == []
    assert [
        name for name in files if any(part in name for part in ("Qt6Qml", "Qt6Quick", "Qt6Network"))
    ] == []
    assert [name for name in files if name.endswith("direct_url.json")] == [], "a path of this machine"


def test_entry_points_resources_and_licences_are_inside(contents):
    files, _ = contents
    assert f"causerie-{app.__version__}.dist-info/entry_points.txt" in files
    assert {"resources/catalogue.json", "resources/icons/causerie.png"} <= files
    own = {"LICENSE", "THIRD_PARTY_NOTICES.md", "LGPL-3.0.txt", "GPL-3.0.txt"}
    assert {f"licences/{name}" for name in own} <= files
    of_libraries = {
        Path(name).parts[1] for name in files if name.startswith("licences/") if name.count("/") > 1
    }
    assert {"Python", "numpy", "Jinja2", "huggingface_hub", "regex", "Pygments"} <= of_libraries


@pytest.mark.parametrize("level", supported_levels())
def test_the_self_test_passes_with_an_empty_environment(elsewhere, model, level):
    answer = elsewhere.run("--selftest", model, "--json", CAUSERIE_CPU_LEVEL=level)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = {check["name"]: check["details"] for check in json.loads(answer.stdout)["checks"]}
    assert f"Causerie {app.__version__} (single file)" in found["version"]
    assert level in found["kernels"]
    assert "cpu" in found["backends"] and "fake" in found["backends"]
    assert found["window"].startswith("Qt 6")
    assert "wrote 8 tokens" in found["model"]
    assert list(elsewhere.unpacked.iterdir()) == [], "what was unpacked is gone"


def test_it_replies_as_the_source_does(elsewhere, model):
    words = ["chat", model, "-m", "Name three colours.", "--temp", "0", "-n", "40"]
    answer = elsewhere.run(*words)
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.split()) > 5
    assert answer.stdout == run_app(*words).stdout


def test_errors_are_sentences(elsewhere, tmp_path):
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\3\0\0\0")
    for name in ("cut.gguf", "not-there.gguf", "."):
        answer = elsewhere.run("info", name)
        assert answer.returncode == 1
        assert answer.stderr.startswith("error: ") and "Traceback" not in answer.stderr
    assert elsewhere.run().stderr.startswith("error: There is no display")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_reply_can_be_ended_from_outside(elsewhere, model, number, status):
    process = elsewhere.start("chat", model, "-m", "Tell a very long story.", "--temp", "0", "-n", "4000")
    assert process.stdout.read(20), "it is writing"
    process.send_signal(number)
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == status
    assert "Traceback" not in rest
    assert list(elsewhere.unpacked.iterdir()) == []


@pytest.fixture
def display() -> Iterator[str]:
    reader, writer = os.pipe()
    command = ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1100x760x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[writer], stderr=subprocess.DEVNULL)
    os.close(writer)
    with os.fdopen(reader) as answers:
        number = answers.readline().strip()
    assert number, "Xvfb did not start"
    yield f":{number}"
    server.terminate()
    server.wait()


def picture_of(display: str, path: Path) -> set[str]:
    """Takes a picture of the whole display; returns the colours on it."""
    subprocess.run(["import", "-display", display, "-window", "root", path], check=True)
    image = QImage(str(path))
    assert not image.isNull()
    return {
        image.pixelColor(x, y).name() for x in range(0, image.width(), 2) for y in range(0, image.height(), 2)
    }


@pytest.mark.skipif(not shutil.which("Xvfb"), reason="needs Xvfb (`dev.py test` installs it on Debian)")
def test_its_window_opens_and_closes(elsewhere, model, display, tmp_path):
    before = picture_of(display, tmp_path / "before.png")
    process = elsewhere.start(model, DISPLAY=display)
    wanted = {LIGHT.canvas, LIGHT.panel, LIGHT.text, LIGHT.accent}
    assert not wanted & before
    end = time.monotonic() + 60
    while not wanted <= (colours := picture_of(display, tmp_path / "window.png")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end, f"the window does not show {wanted - colours}"
        time.sleep(0.2)
    if keep := os.environ.get("CAUSERIE_KEEP_SCREENSHOTS"):
        shutil.copy(tmp_path / "window.png", Path(keep) / "single-file.png")
    process.terminate()
    told, _ = process.communicate(timeout=30)
    assert process.returncode == 0, told
    assert "Traceback" not in told
    assert list(elsewhere.unpacked.iterdir()) == []
