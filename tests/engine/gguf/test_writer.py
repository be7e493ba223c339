"""The writer: whole or not at all, views written as they look, copies equal to the byte, data streamed."""

from __future__ import annotations

import filecmp
import lzma
import os
import struct
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import Cancelled, CauserieError, ModelFileError, ModelWriteError
from engine.gguf.metadata import NUMBER_DTYPES, MetadataValue, ValueType
from engine.gguf.reader import GGUFFile
from engine.gguf.tensor_types import TENSOR_TYPES
from engine.gguf.values import number
from engine.gguf.writer import CHUNK_BYTES, Chunk, StreamedTensor, gguf_bytes, write_gguf, write_gguf_parts
from engine.quantisation.dequantise import dequantise
from engine.quantisation.quantise import make_tensor
from tests.helpers.raw_gguf import ARRAY, INT32, STRING, array, entry, gguf, string, tensor
from tests.helpers.tiny_model import write_tiny_model
from tests.helpers.vocabularies import FOLDER, PUBLISHED
from tools.fuzz_gguf import difference
from tools.plain_gguf import read_plainly


@pytest.mark.parametrize("alignment", [8, 32, 4096])
def test_alignment_is_followed(tmp_path: Path, alignment: int) -> None:
    path = tmp_path / "aligned.gguf"
    weights = np.arange(5, dtype=np.float32)
    write_gguf(path, {"general.alignment": alignment}, [make_tensor(name, weights) for name in "abc"])
    with GGUFFile.open(path) as file:
        assert file.alignment == alignment
        for tensor in file.tensors.values():
            np.testing.assert_array_equal(dequantise(tensor), weights)
    assert path.stat().st_size % alignment == 0


def test_copy_of_a_file_is_equal(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", quant_type="Q5_1")
    with GGUFFile.open(path) as file:
        write_gguf(tmp_path / "copy.gguf", file.metadata, file.tensors.values())
    assert (tmp_path / "copy.gguf").read_bytes() == path.read_bytes()


def test_views_are_written_as_they_look(tmp_path: Path) -> None:
    cube = np.arange(2 * 3 * 64, dtype=np.float32).reshape(2, 3, 64)
    view = make_tensor("cube", cube).transposed(1, 0, 2).sliced(2, 32, 64)
    write_gguf(tmp_path / "view.gguf", {}, [view])
    with GGUFFile.open(tmp_path / "view.gguf") as file:
        np.testing.assert_array_equal(dequantise(file.tensors["cube"]), cube.swapaxes(0, 1)[..., 32:])


def test_slice_that_begins_later(tmp_path: Path) -> None:
    weights = np.arange(64, dtype=np.float32).reshape(4, 16)
    write_gguf(tmp_path / "slice.gguf", {}, [make_tensor("rows", weights).sliced(0, 1, 3)])
    with GGUFFile.open(tmp_path / "slice.gguf") as file:
        np.testing.assert_array_equal(dequantise(file.tensors["rows"]), weights[1:3])


def test_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelWriteError, match="No space left"):
        write_gguf(path, {}, [make_tensor("good", np.ones(4))])
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("value", [None, {"a": 1}, 2**64, [2**40], [1, "a"], np.zeros((2, 2)), [[1], [2]]])
def test_values_that_no_file_holds(tmp_path: Path, value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        write_gguf(tmp_path / "model.gguf", {"key": value})
    assert list(tmp_path.iterdir()) == []


def test_names_must_differ(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two tensors of one name"):
        write_gguf(tmp_path / "model.gguf", {}, [make_tensor("a", np.ones(4)), make_tensor("a", np.ones(4))])


def test_every_type_of_value_as_the_format_has_it(tmp_path: Path) -> None:
    """Against bytes put together by hand."""
    numbers = {
        0: ("<B", 255), 1: ("<b", -128), 2: ("<H", 65535), 3: ("<h", -32768), 4: ("<I", 2**32 - 1),
        5: ("<i", -(2**31)), 6: ("<f", 0.5), 7: ("<?", True), 10: ("<Q", 2**64 - 1), 11: ("<q", -(2**63)),
        12: ("<d", 0.1),
    }  # fmt: skip
    values: dict[str, object] = {}
    entries = []
    for type, (form, value) in numbers.items():
        kind = ValueType(type)
        raw = struct.pack(form, value)
        values[f"one.{type}"] = number(kind, value)
        entries.append(entry(f"one.{type}".encode(), type, raw))
        items = np.array([value, 0, value], NUMBER_DTYPES[kind])
        values[f"three.{type}"] = MetadataValue(ValueType.ARRAY, items, kind)
        zero = b"\0" * len(raw)
        entries.append(entry(f"three.{type}".encode(), ARRAY, array(type, 3, raw + zero + raw)))
    values |= {"text": "zwölf", "bytes": b"\xff\0", "texts": ["", "é"], "nothing": np.array([], np.int32)}
    entries += [
        entry(b"text", STRING, string("zwölf".encode())),
        entry(b"bytes", STRING, string(b"\xff\0")),
        entry(b"texts", ARRAY, array(STRING, 2, string(b"") + string("é".encode()))),
        entry(b"nothing", ARRAY, array(INT32, 0)),
    ]
    write_gguf(tmp_path / "all.gguf", values)
    assert (tmp_path / "all.gguf").read_bytes() == gguf(entries, alignment=1)
    with GGUFFile.open(tmp_path / "all.gguf") as file:
        write_gguf(tmp_path / "copy.gguf", file.metadata)
    assert (tmp_path / "copy.gguf").read_bytes() == (tmp_path / "all.gguf").read_bytes()


def test_tensors_as_the_format_has_them(tmp_path: Path) -> None:
    cube = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    write_gguf(tmp_path / "m.gguf", {}, [make_tensor("a", cube), make_tensor("b", np.ones(3, np.float32))])
    expected = gguf(
        (), [tensor(b"a", [2, 3, 2]), tensor(b"b", [3], offset=64)],
        cube.tobytes() + b"\0" * 16 + np.ones(3, np.float32).tobytes() + b"\0" * 20,
    )  # fmt: skip
    assert (tmp_path / "m.gguf").read_bytes() == expected


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_vocabularies_come_back_to_the_byte(tmp_path: Path, name: str) -> None:
    content = lzma.decompress((FOLDER / f"{name}.gguf.xz").read_bytes())
    (tmp_path / "a.gguf").write_bytes(content)
    with GGUFFile.open(tmp_path / "a.gguf") as file:
        write_gguf(tmp_path / "b.gguf", file.metadata, version=file.version)
    assert (tmp_path / "b.gguf").read_bytes() == content


@pytest.mark.real_model
@pytest.mark.parametrize("name", ["smollm2_path", "gemma3_path"])
def test_real_models_come_back_to_the_byte(tmp_path: Path, request: pytest.FixtureRequest, name: str) -> None:
    source = request.getfixturevalue(name)
    with GGUFFile.open(source) as file:
        write_gguf(tmp_path / "copy.gguf", file.metadata, file.tensors.values())
    assert filecmp.cmp(source, tmp_path / "copy.gguf", shallow=False)
    (tmp_path / "copy.gguf").unlink()


F32 = TENSOR_TYPES["F32"]


def test_data_is_made_when_its_turn_comes(tmp_path: Path) -> None:
    asked: list[str] = []
    weights = np.arange(48, dtype=np.float32).reshape(6, 8)

    def chunks(name: str) -> Iterator[Chunk]:
        asked.append(name)
        yield weights[:1]
        yield weights[1:3, ::-1][:, ::-1]  # the same rows, as a view that must be copied
        yield weights[3:].tobytes()[:5]
        yield memoryview(weights[3:].tobytes())[5:]

    tensors = [StreamedTensor(name, F32, (6, 8), lambda name=name: chunks(name)) for name in ("a", "b")]
    assert tensors[0].nbytes == 192
    shares: list[float] = []
    write_gguf(tmp_path / "m.gguf", {}, [*tensors, make_tensor("c", weights)], on_progress=shares.append)
    assert asked == ["a", "b"]
    assert shares == sorted(shares) and shares[-1] == 1 and len(shares) == 9
    with GGUFFile.open(tmp_path / "m.gguf") as file:
        for part in file.tensors.values():
            np.testing.assert_array_equal(dequantise(part), weights)


def test_a_large_tensor_is_copied_without_being_in_memory(tmp_path: Path) -> None:
    n_rows = 20_000
    with (tmp_path / "large.gguf").open("wb") as target:
        target.write(
            gguf((), [tensor(b"large", [1024, n_rows]), tensor(b"flat", [10**7], offset=4096 * n_rows)])
        )
        target.truncate(target.tell() + 4096 * n_rows + 4 * 10**7)
    with GGUFFile.open(tmp_path / "large.gguf") as file:
        tracemalloc.start()
        write_gguf(tmp_path / "copy.gguf", file.metadata, file.tensors.values())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert 4096 * n_rows > 10 * CHUNK_BYTES
    assert peak < 3 * CHUNK_BYTES


class OutOfSorts(CauserieError):
    pass


@pytest.mark.parametrize("part", [True, False])
def test_a_failure_half_way_leaves_nothing(tmp_path: Path, part: bool) -> None:
    """Of one file or of several: whatever making the data raises comes out, and no file stays."""

    def fail() -> Iterator[Chunk]:
        yield b"\0" * 16
        raise OutOfSorts("No more of it.")

    tensors = [make_tensor("good", np.ones(8)), StreamedTensor("bad", F32, (8,), fail)]
    with pytest.raises(OutOfSorts):
        if part:
            write_gguf_parts(tmp_path / "m.gguf", {}, tensors, 32)
        else:
            write_gguf(tmp_path / "m.gguf", {}, tensors)
    assert list(tmp_path.iterdir()) == []


def test_whoever_watches_may_stop_it(tmp_path: Path) -> None:
    def stop(share: float) -> None:
        if share > 0.4:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        write_gguf(tmp_path / "m.gguf", {}, [make_tensor(n, np.ones(8)) for n in "abc"], on_progress=stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [0, 31, 33])
def test_too_few_or_too_many_bytes(tmp_path: Path, given: int) -> None:
    wrong = StreamedTensor("wrong", F32, (8,), lambda: [b"\0" * given])
    with pytest.raises(ValueError, match=f"wrong: {given} bytes were given, 32 are needed"):
        write_gguf(tmp_path / "m.gguf", {}, [wrong])
    assert list(tmp_path.iterdir()) == []


def test_a_source_cut_short_meanwhile(tmp_path: Path) -> None:
    """Case G-09: no partial output, no death by a signal."""
    source = write_tiny_model(tmp_path / "tiny.gguf")
    with GGUFFile.open(source) as file:
        os.truncate(source, source.stat().st_size - 4096)
        with pytest.raises(ModelFileError, match="shorter"):
            write_gguf(tmp_path / "copy.gguf", file.metadata, file.tensors.values())
    assert list(tmp_path.iterdir()) == [source]


def test_a_model_over_itself(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    before = path.read_bytes()
    with GGUFFile.open(path) as file:
        write_gguf(path, file.metadata, file.tensors.values())
    assert path.read_bytes() == before


def test_parts_keep_to_their_size_and_fit_together(tmp_path: Path) -> None:
    tensors = [make_tensor(name, np.full((4, 8), index)) for index, name in enumerate("abcdef")]
    values = {"general.name": "x", "general.alignment": 64, "split.count": 9, "split.no": 7}
    paths = write_gguf_parts(tmp_path / "m.gguf", values, tensors, 256)
    assert [path.name for path in paths] == [f"m-0000{part}-of-00003.gguf" for part in (1, 2, 3)]
    for path in paths:
        with GGUFFile.open(path) as file:
            assert [dequantise(part).mean() for part in file.tensors.values()] == list(range(6))
            assert file.alignment == 64
    assert paths[1].stat().st_size < 256 + 400


def test_a_tensor_larger_than_a_part_has_one_of_its_own(tmp_path: Path) -> None:
    sizes = {"a": 8, "b": 800, "c": 8, "d": 8}
    tensors = [make_tensor(name, np.ones(size)) for name, size in sizes.items()]
    paths = write_gguf_parts(tmp_path / "m.gguf", {}, tensors, 64)
    with GGUFFile.open(paths[0]) as file:
        assert len(file.paths) == 3 and list(file.tensors) == list(sizes)


def test_what_fits_one_file_is_one_file(tmp_path: Path) -> None:
    tensors = [make_tensor(name, np.ones(8)) for name in "ab"]
    assert write_gguf_parts(tmp_path / "m.gguf", {"a": 1}, tensors, 64) == [tmp_path / "m.gguf"]
    write_gguf(tmp_path / "same.gguf", {"a": 1}, tensors)
    assert (tmp_path / "m.gguf").read_bytes() == (tmp_path / "same.gguf").read_bytes()


@pytest.mark.parametrize("path", ["nowhere/m.gguf", "a file/m.gguf", "x" * 300 + ".gguf"])
def test_a_place_where_nothing_can_be_written(tmp_path: Path, path: str) -> None:
    (tmp_path / "a file").write_bytes(b"")
    with pytest.raises(ModelWriteError, match="could not be written") as caught:
        write_gguf(tmp_path / path, {})
    assert caught.value.advice
    assert [each.name for each in tmp_path.iterdir()] == ["a file"]


@pytest.mark.parametrize(
    ("name", "shape"),
    [("", (8,)), ("x" * 65, (8,)), ("a\nb", (8,)), ("a", ()), ("a", (1,) * 5), ("a", (8, 0)), ("a", (2, -1))],
)
def test_tensors_that_no_file_holds(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"no (name|shape) of a tensor"):
        write_gguf(tmp_path / "m.gguf", {}, [StreamedTensor(name, F32, shape, lambda: [])])
    with pytest.raises(ValueError, match="no blocks"):
        write_gguf(tmp_path / "m.gguf", {}, [StreamedTensor("a", TENSOR_TYPES["Q4_0"], (2, 31), lambda: [])])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["", "a\nb", "k" * 65536])
def test_keys_that_no_file_holds(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="no key of a file"):
        write_gguf(tmp_path / "m.gguf", {key: 1})


@pytest.mark.parametrize("value", [0, 3, 2**21, number(ValueType.UINT64, 32), "32"])
def test_alignments_that_no_file_has(tmp_path: Path, value: object) -> None:
    with pytest.raises(ModelFileError, match=r"general\.alignment"):
        write_gguf(tmp_path / "m.gguf", {"general.alignment": value}, [make_tensor("a", np.ones(4))])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (ValueType.UINT8, 256),
        (ValueType.INT8, -129),
        (ValueType.UINT64, -1),
        (ValueType.INT64, 2**63),
        (ValueType.UINT16, 1.5),
        (ValueType.STRING, 1),
    ],
)
def test_numbers_that_a_type_cannot_hold(type: ValueType, value: int | float) -> None:
    with pytest.raises(ValueError):
        number(type, value)


NAMES = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=12)
ARRAYS = st.sampled_from([dtype for dtype in NUMBER_DTYPES.values() if dtype.kind in "iu"]).flatmap(
    lambda dtype: st.lists(st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)), max_size=5).map(
        lambda items: np.array(items, dtype)
    )
)
VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(width=32, allow_nan=False),
    st.binary(max_size=20),
    ARRAYS,
    st.lists(st.binary(max_size=8), min_size=1, max_size=5),
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.dictionaries(NAMES, VALUES, max_size=6),
    lengths=st.dictionaries(NAMES, st.lists(st.integers(1, 5), min_size=1, max_size=4), max_size=4),
    alignment=st.sampled_from([1, 8, 32, 64]),
)
def test_whatever_is_written_is_read(
    tmp_path: Path, values: dict[str, Any], lengths: dict[str, list[int]], alignment: int
) -> None:
    """By the reader, and by the plain one that shares nothing with it."""
    tensors = [make_tensor(name, np.full(shape, 0.5)) for name, shape in lengths.items()]
    path = tmp_path / "any.gguf"
    write_gguf(path, {**values, "general.alignment": alignment}, tensors)
    plain = read_plainly(path.read_bytes())
    with GGUFFile.open(path) as file:
        assert difference(file, path.read_bytes(), path.stat().st_size) == ""
        assert list(file.metadata) == [*values, "general.alignment"]
    for name, value in values.items():
        found = plain.metadata[name.encode()][2]
        assert found == (value.tolist() if isinstance(value, np.ndarray) else value)
    assert {name.decode(): entry[0] for name, entry in plain.tensors.items()} == {
        name: shape[::-1] for name, shape in lengths.items()
    }


@pytest.mark.parametrize("alignment", [1, 32, 4096])
@pytest.mark.parametrize("lengths", [[], [(1,)], [(3, 32), (7,), (2, 2, 64)]])
def test_size_is_known_before(tmp_path: Path, alignment: int, lengths: list[tuple[int, ...]]) -> None:
    values = {"general.alignment": alignment, "general.name": "x" * 77, "numbers": [1, 2, 3]}
    tensors = [make_tensor(f"t{index}", np.zeros(shape)) for index, shape in enumerate(lengths)]
    write_gguf(tmp_path / "x.gguf", values, tensors)
    assert gguf_bytes(values, tensors) == (tmp_path / "x.gguf").stat().st_size
