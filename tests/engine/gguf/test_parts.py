"""Models in several files: any part opens all, and what is not in its place is told by name (case G-16)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.gguf.layout import SPLIT_KEYS
from engine.gguf.metadata import ValueType
from engine.gguf.parts import part_path, read_part_name
from engine.gguf.reader import GGUFFile
from engine.gguf.values import number
from engine.gguf.writer import write_gguf, write_gguf_parts
from engine.quantisation.quantise import make_tensor
from tests.engine.gguf.refusal import refused, refused_path
from tests.helpers.raw_gguf import STRING, UINT32, entry, gguf, string, uint32
from tests.helpers.tiny_model import write_tiny_model

NAMES = [f"tiny-0000{number}-of-00003.gguf" for number in (1, 2, 3)]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    folder = tmp_path / "whole"
    folder.mkdir()
    return write_tiny_model(folder / "tiny.gguf", quant_type="Q8_0")


@pytest.fixture
def folder(tmp_path: Path, whole: Path) -> Path:
    """A folder with the tiny model in three parts; its name is a trial for whoever builds patterns of it."""
    folder = tmp_path / "my models [50%] * ?"
    folder.mkdir()
    with GGUFFile.open(whole) as file:
        limit = sum(tensor.nbytes for tensor in file.tensors.values()) * 2 // 5
        paths = write_gguf_parts(folder / "tiny.gguf", file.metadata, file.tensors.values(), limit)
    assert [path.name for path in paths] == sorted(path.name for path in folder.iterdir()) == NAMES
    return folder


def problem_of(path: Path) -> str:
    return refused_path(path)


def rewrite(path: Path, changed: Mapping[str, object], extra: tuple[str, ...] = ()) -> None:
    """The one file again, as it stands, with some keys changed and some tensors more."""
    from engine.gguf.header import OneFile

    file = OneFile(path)
    tensors = [*file.read_tensors().values(), *(make_tensor(name, np.ones(8)) for name in extra)]
    write_gguf(path, {**file.metadata.values, **changed}, tensors)
    file.close()


@pytest.mark.parametrize("name", NAMES)
def test_any_part_opens_the_model(folder: Path, whole: Path, name: str) -> None:
    with GGUFFile.open(folder / name) as file, GGUFFile.open(whole) as single:
        assert [path.name for path in file.paths] == NAMES
        assert file.path.name == name
        assert file.size == sum(path.stat().st_size for path in folder.iterdir())
        assert list(file.tensors) == list(single.tensors)
        for tensor, expected in zip(file.tensors.values(), single.tensors.values(), strict=True):
            assert (tensor.type, tensor.shape) == (expected.type, expected.shape)
            np.testing.assert_array_equal(tensor.in_memory().data, expected.data)
        assert set(file.metadata) == set(single.metadata) | SPLIT_KEYS


def test_parts_know_their_number_as_llama_cpp_writes_it(folder: Path) -> None:
    with GGUFFile.open(folder / NAMES[0]) as file:
        values = file.metadata.values
        kinds = (values["split.no"].type, values["split.count"].type, values["split.tensors.count"].type)
        assert kinds == (ValueType.UINT16, ValueType.UINT16, ValueType.INT32)
        assert [file.metadata.get_int(key) for key in ("split.no", "split.count")] == [0, 3]
        assert file.metadata.get_int("split.tensors.count") == len(file.tensors)


def test_parts_joined_again_are_the_whole(folder: Path, whole: Path) -> None:
    with GGUFFile.open(folder / NAMES[1]) as file:
        values = {key: value for key, value in file.metadata.values.items() if key not in SPLIT_KEYS}
        write_gguf(folder / "joined.gguf", values, file.tensors.values())
    assert (folder / "joined.gguf").read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_missing_part_is_named(folder: Path, name: str) -> None:
    (folder / NAMES[2]).unlink()
    problem = problem_of(folder / name)
    assert name in problem and f"{NAMES[2]} is missing" in problem
    assert problem.count("missing") == 1


def test_all_missing_parts_are_named(folder: Path) -> None:
    (folder / NAMES[0]).unlink()
    (folder / NAMES[2]).unlink()
    problem = problem_of(folder / NAMES[1])
    assert f"{NAMES[0]} is missing" in problem and f"{NAMES[2]} is missing" in problem


def test_a_part_of_another_name(folder: Path) -> None:
    (folder / NAMES[1]).rename(folder / "small-00002-of-00003.gguf")
    assert f"{NAMES[1]} is missing" in problem_of(folder / NAMES[0])
    problem = problem_of(folder / "small-00002-of-00003.gguf")
    assert "small-00001-of-00003.gguf is missing" in problem
    assert "small-00003-of-00003.gguf is missing" in problem


def test_a_first_part_that_is_not_called_so(folder: Path) -> None:
    (folder / NAMES[0]).rename(folder / "m.gguf")
    assert f"{NAMES[0]} is missing" in problem_of(folder / NAMES[2])
    problem = problem_of(folder / "m.gguf")
    assert "m.gguf holds part 1 of 3" in problem and "-00001-of-00003.gguf" in problem


def test_parts_that_count_differently(folder: Path) -> None:
    rewrite(folder / NAMES[1], {"split.count": number(ValueType.UINT16, 2)})
    assert f"{NAMES[1]} holds part 2 of 2" in problem_of(folder / NAMES[0])
    assert f"{NAMES[1]} holds part 2 of 2" in problem_of(folder / NAMES[1])


def test_one_part_copied_over_another(folder: Path) -> None:
    shutil.copy(folder / NAMES[1], folder / NAMES[2])
    for name in NAMES:
        assert f"{NAMES[2]} holds part 2 of 3" in problem_of(folder / name)


def test_a_whole_model_in_the_place_of_a_part(folder: Path, whole: Path) -> None:
    shutil.copy(whole, folder / NAMES[1])
    assert f"{NAMES[1]} holds part 1 of 1" in problem_of(folder / NAMES[0])


def test_a_part_that_is_no_model(folder: Path) -> None:
    (folder / NAMES[1]).write_bytes(b"<!DOCTYPE html>")
    assert f"{NAMES[1]} is a web page" in problem_of(folder / NAMES[0])
    (folder / NAMES[1]).unlink()
    (folder / NAMES[1]).mkdir()
    assert f"{NAMES[1]} is a folder" in problem_of(folder / NAMES[0])


def test_a_part_that_is_cut_short(folder: Path) -> None:
    with (folder / NAMES[2]).open("r+b") as part:
        part.truncate((folder / NAMES[2]).stat().st_size - 100)
    assert f"{NAMES[2]} is cut short or damaged" in problem_of(folder / NAMES[0])


def test_a_tensor_in_two_parts(folder: Path) -> None:
    rewrite(folder / NAMES[2], {}, ("token_embd.weight",))
    problem = problem_of(folder / NAMES[0])
    assert "token_embd.weight stands in both" in problem
    assert NAMES[0] in problem and NAMES[2] in problem


def test_parts_of_two_models(folder: Path) -> None:
    rewrite(folder / NAMES[2], {}, ("one.more",))
    with pytest.raises(ModelFileError, match=r"split\.tensors\.count is \d+, but its 3 parts hold \d+"):
        GGUFFile.open(folder / NAMES[0])


def test_fifty_thousand_parts_are_not_all_named(tmp_path: Path) -> None:
    entries = [entry(b"split.count", UINT32, uint32(50_000)), entry(b"split.no", UINT32, uint32(7))]
    path = tmp_path / "x-00008-of-50000.gguf"
    path.write_bytes(gguf(entries))
    problem = problem_of(path)
    assert "x-00001-of-50000.gguf is missing" in problem and "and perhaps others" in problem
    assert len(problem) < 2000


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [(b"split.count", 65_536, "65536"), (b"split.no", 3, "is 3"), (b"split.no", 2**32 - 1, str(2**32 - 1))],
)
def test_absurd_numbers(tmp_path: Path, key: bytes, value: int, what: str) -> None:
    numbers = {b"split.count": 3, b"split.no": 1} | {key: value}
    title = refused(tmp_path, gguf([entry(name, UINT32, uint32(item)) for name, item in numbers.items()]))
    assert key.decode() in title and what in title


def test_a_count_that_is_no_number(tmp_path: Path) -> None:
    title = refused(tmp_path, gguf([entry(b"split.count", STRING, string(b"3"))]))
    assert "split.count is of type string" in title


@pytest.mark.parametrize("name", ["best-of-breed.gguf", "x-00001-of-00001.gguf", "x-00002-of-00003.gguf"])
@pytest.mark.parametrize("count", [None, 0, 1])
def test_single_files_load_whatever_they_are_called(tmp_path: Path, name: str, count: int | None) -> None:
    entries = [] if count is None else [entry(b"split.count", UINT32, uint32(count))]
    (tmp_path / name).write_bytes(gguf(entries))
    with GGUFFile.open(tmp_path / name) as file:
        assert [path.name for path in file.paths] == [name]


def test_metadata_of_all_parts_shares_one_allowance(folder: Path) -> None:
    """Parts may not take so much memory each."""
    from engine.gguf.cursor import ALLOWANCE, COPIES

    for name in NAMES[1:]:
        rewrite(folder / name, {"long": "x" * (ALLOWANCE * 2 // (3 * COPIES))})
    assert f"{NAMES[2]}: long would take" in problem_of(folder / NAMES[0])


def test_names() -> None:
    assert part_path(Path("a/x.y.gguf"), 1, 12) == Path("a/x.y-00002-of-00012.gguf")
    assert part_path(Path("a/x.GGUF"), 0, 2) == Path("a/x-00001-of-00002.GGUF")
    assert part_path(Path("a/x"), 0, 2) == Path("a/x-00001-of-00002.gguf")
    assert read_part_name(Path("a/x.y-00002-of-00012.gguf")) == (Path("a/x.y.gguf"), 1, 12)
    assert read_part_name(Path("a/x\ny-00002-of-00012.gguf")) == (Path("a/x\ny.gguf"), 1, 12)
    for name in ("best-of-breed.gguf", "x-1-of-2.gguf", "-00001-of-00002.gguf", "x-00001-of-00002.bin"):
        assert read_part_name(Path(name)) is None
