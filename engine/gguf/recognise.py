"""Says what a file is when it is no GGUF file that can be read, so that the message helps."""

from __future__ import annotations

import re

from engine.errors import ModelFileError, UnsupportedModelError

MAGIC = b"GGUF"
SUPPORTED_VERSIONS = (2, 3)

_PREDECESSORS = {b"tjgg": "GGJT", b"lmgg": "GGML", b"fmgg": "GGMF", b"algg": "GGLA"}
_LFS_SIZE = re.compile(rb"^size (\d{1,20})\r?$", re.MULTILINE)


def check_magic(start: bytes, file_name: str) -> None:
    """Raises ModelFileError saying what the file is, unless its first bytes (up to 512) are those of GGUF."""
    magic = start[:4]
    if magic == MAGIC:
        return
    if not start:
        raise ModelFileError(f"{file_name} is empty (0 bytes).")
    if magic == MAGIC[::-1]:
        raise _big_endian(file_name)
    if magic in _PREDECESSORS:
        raise ModelFileError(
            f"{file_name} is of the kind {_PREDECESSORS[magic]}, which came before GGUF.",
            "Download the model as a GGUF file.",
        )
    if magic == b"PK\x03\x04":
        raise ModelFileError(
            f"{file_name} is a zip archive or a PyTorch checkpoint, not a GGUF file.",
            "Unpack it, or download the model as a GGUF file.",
        )
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype html", b"<html")):
        raise ModelFileError(
            f"{file_name} is a web page, not a model.",
            "Download it again: the link was probably the /blob/ page instead of the /resolve/ file.",
        )
    if start.startswith(b"version https://git-lfs.github.com/spec/"):
        size = _LFS_SIZE.search(start)
        real_size = f"; the real file has {int(size[1])} bytes" if size else ""
        raise ModelFileError(
            f"{file_name} is a Git LFS pointer{real_size}.",
            "Run `git lfs pull` in its folder, or download the file itself.",
        )
    if start[8:10] == b'{"':
        raise ModelFileError(
            f"{file_name} is a safetensors file, not a GGUF file.", "Download the model as a GGUF file."
        )
    if len(start) < 4:
        raise ModelFileError(f"{file_name} has only {len(start)} bytes: it is no GGUF file.")
    raise ModelFileError(f"{file_name} is no GGUF file: it begins with {magic!r}, not {MAGIC!r}.")


def check_version(version: int, file_name: str) -> None:
    """Raises where the version cannot be read: ModelFileError, or UnsupportedModelError for a newer one."""
    if version in SUPPORTED_VERSIONS:
        return
    if version == 0:
        raise ModelFileError(f"{file_name}: GGUF version 0 does not exist.")
    # A small version number written in the other byte order leaves the low half empty.
    if version & 0xFFFF == 0:
        raise _big_endian(file_name)
    if version == 1:
        raise ModelFileError(f"{file_name}: GGUF v1 is too old.", "Download a newer version of the file.")
    raise UnsupportedModelError(
        f"{file_name}: GGUF version {version} is newer than supported ({SUPPORTED_VERSIONS[-1]}).",
        "Update the program, or choose another file.",
    )


def _big_endian(file_name: str) -> ModelFileError:
    return ModelFileError(
        f"{file_name} is a big-endian file, made for another kind of processor.",
        "Download the little-endian version of the model.",
    )
