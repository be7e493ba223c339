"""A model in several files: how its parts are called, and how all are opened from any of them.

Parts are called ``name-00001-of-00003.gguf``, counted from 1, and know their number, counted from 0, by the
key ``split.no``; all metadata stands in the first (the convention of llama.cpp's `gguf-split`).
"""

from __future__ import annotations

import re
from pathlib import Path

from engine.errors import ModelFileError
from engine.gguf.header import OneFile
from engine.gguf.layout import PART_COUNT_KEY, PART_KEY
from engine.gguf.metadata import Metadata

MAX_PARTS = (1 << 16) - 1
"""The count is a uint16 in the files of llama.cpp."""
MAX_TOLD = 20
"""Parts that one message names."""

_PART_NAME = re.compile(
    r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)


def part_path(path: Path, index: int, n_parts: int) -> Path:
    """The path of part index (from 0) of the model that path would be in one file."""
    stem, suffix = (path.stem, path.suffix) if path.suffix.lower() == ".gguf" else (path.name, ".gguf")
    return path.with_name(f"{stem}-{index + 1:05d}-of-{n_parts:05d}{suffix}")


def read_part_name(path: Path) -> tuple[Path, int, int] | None:
    """What the name says: the path of the whole model, which part (from 0), of how many.

    None where the name is not that of a part.
    """
    match = _PART_NAME.fullmatch(path.name)
    if match is None:
        return None
    whole = path.with_name(match["stem"] + match["suffix"])
    return whole, int(match["number"]) - 1, int(match["count"])


def open_parts(path: Path) -> list[OneFile]:
    """The file, or all parts of the model that it is a part of, in order.

    Raises ModelFileError naming every part that is missing, has another name or belongs elsewhere, and what
    opening a file raises; then none is left open.
    """
    chosen = OneFile(path)
    try:
        index, n_parts = _number_of(chosen.metadata)
        if n_parts == 1:
            return [chosen]
        named = read_part_name(path)
        if named is None or named[1:] != (index, n_parts):
            raise ModelFileError(
                f"{path.name} holds part {index + 1} of {n_parts} of a model, but is not called so: "
                f"its name should end in {part_path(Path('x.gguf'), index, n_parts).name[1:]}.",
                "Give it back its name, and keep all parts in one folder.",
            )
    except BaseException:
        chosen.close()
        raise
    return _open_all(chosen, named[0], n_parts)


def _open_all(chosen: OneFile, whole: Path, n_parts: int) -> list[OneFile]:
    files: list[OneFile] = []
    problems: list[str] = []
    allowance = chosen.allowance
    try:
        for index in range(n_parts):
            if len(problems) == MAX_TOLD:
                problems.append("and perhaps others")
                break
            path = part_path(whole, index, n_parts)
            if path.name == chosen.path.name:
                files.append(chosen)
            elif path.exists():
                files.append(OneFile(path, allowance))
                allowance = files[-1].allowance
            else:
                problems.append(f"{path.name} is missing")
                continue
            number, count = _number_of(files[-1].metadata)
            if (number, count) != (index, n_parts):
                problems.append(f"{path.name} holds part {number + 1} of {count}")
        if problems:
            raise ModelFileError(
                f"{chosen.path.name} belongs to a model in {n_parts} files, not all in place: "
                f"{', '.join(problems)}.",
                "Keep all parts in one folder under the names they were downloaded with.",
            )
    except BaseException:
        for file in {chosen, *files}:
            file.close()
        raise
    return files


def _number_of(metadata: Metadata) -> tuple[int, int]:
    """Which part the file is, from 0, and of how many; (0, 1) for a model in one file."""
    n_parts = metadata.get_int(PART_COUNT_KEY, 1, minimum=0, maximum=MAX_PARTS)
    if n_parts < 2:
        return 0, 1
    return metadata.get_int(PART_KEY, 0, minimum=0, maximum=n_parts - 1), n_parts
