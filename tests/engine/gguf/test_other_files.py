"""What a person may pick by mistake: other kinds of file, folders, pipes; each is named for what it is."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from engine.errors import ModelFileError
from engine.gguf.reader import GGUFFile
from tests.engine.gguf.refusal import refused, refused_path
from tests.helpers.raw_gguf import gguf, tensor, uint64


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (b"GGU", "only 3 bytes"),
        (b"GGUF\0\0\0\3" + b"\0" * 16, "big-endian"),
        (b"FUGG\0\0\0\3" + b"\0" * 16, "big-endian"),
        (gguf(version=65536), "big-endian"),
        (gguf(version=0), "version 0 does not exist"),
        (gguf(version=1), "GGUF v1 is too old"),
        (gguf(version=4), "version 4 is newer than supported"),
        (b"tjgg" + b"\0" * 20, "GGJT, which came before GGUF"),
        (b"lmgg" + b"\0" * 20, "GGML, which came before GGUF"),
        (b"PK\3\4" + b"\0" * 20, "zip archive or a PyTorch checkpoint"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"\n <html lang='en'>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98362432\n", "98362432 bytes"),
        (b"version https://git-lfs.github.com/spec/v1\r\noid sha256:00\r\nsize 123\r\n", "123 bytes"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (uint64(64) + b'{"__metadata__":{}}', "safetensors"),
        (b"something else entirely", "is no GGUF file"),
    ],
)
def test_files_of_another_kind(tmp_path: Path, content: bytes, what: str) -> None:
    assert what in refused(tmp_path, content)


def test_version_2_loads(tmp_path: Path) -> None:
    path = tmp_path / "two.gguf"
    path.write_bytes(gguf(tensors=[tensor(b"a", [8])], data=b"\0" * 32, version=2))
    with GGUFFile.open(path) as file:
        assert (file.version, list(file.tensors)) == (2, ["a"])


def test_empty_container_loads(tmp_path: Path) -> None:
    path = tmp_path / "empty.gguf"
    path.write_bytes(gguf())
    with GGUFFile.open(path) as file:
        assert (len(file.metadata), file.tensors, file.alignment) == (0, {}, 32)
        with pytest.raises(ModelFileError, match=r"lacks general\.architecture"):
            file.metadata.get_string("general.architecture")


def test_folder(tmp_path: Path) -> None:
    assert "is a folder" in refused_path(tmp_path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="There is no file"):
        GGUFFile.open(tmp_path / "nowhere.gguf")


@pytest.mark.parametrize("name", ["nul\0byte.gguf", "x" * 5000])
def test_impossible_path(name: str) -> None:
    with pytest.raises(ModelFileError, match="cannot be read"):
        GGUFFile.open(name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.timeout(10)
def test_pipe_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "pipe.gguf"
    os.mkfifo(path)
    assert "is a pipe or a device" in refused_path(path)


def test_permission_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told by the system call, since tests may run as an administrator, who may read everything."""
    path = tmp_path / "secret.gguf"
    path.write_bytes(gguf())

    def deny(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", deny)
    with pytest.raises(ModelFileError, match="permission denied"):
        GGUFFile.open(path)


@pytest.mark.parametrize("lack", [errno.ENOMEM, errno.EMFILE, errno.ENFILE])
def test_what_the_system_lacks_is_not_the_fault_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lack: int
) -> None:
    path = tmp_path / "sound.gguf"
    path.write_bytes(gguf())

    def fail(*_: object, **__: object) -> int:
        raise OSError(lack, os.strerror(lack))

    for call in ("os.open", "mmap.mmap"):
        with monkeypatch.context() as patched:
            patched.setattr(call, fail)
            with pytest.raises(ModelFileError) as caught:
                GGUFFile.open(path)
        assert os.strerror(lack) in caught.value.title and "Download" not in caught.value.advice
    GGUFFile.open(path).close()
