"""Damaged and hostile files: one typed error naming the fault, at once, and without memory."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import pytest

from engine.gguf.cursor import ALLOWANCE, COPIES, STRING_OVERHEAD
from engine.gguf.layout import MAX_KEYS, MAX_TENSORS
from engine.gguf.reader import GGUFFile
from engine.quantisation.dequantise import dequantise
from tests.engine.gguf.refusal import refused
from tests.helpers.raw_gguf import (
    ARRAY,
    BOOL,
    F32,
    I8,
    INT32,
    Q8_0,
    STRING,
    UINT8,
    UINT32,
    UINT64,
    array,
    entry,
    gguf,
    string,
    tensor,
    uint32,
    uint64,
)


@pytest.mark.parametrize(
    ("n_tensors", "n_entries", "what"),
    [
        (2**64 - 1, 0, "18446744073709551615 tensors"),
        (0, 2**64 - 1, "18446744073709551615 metadata keys"),
        (2**63, 0, "9223372036854775808 tensors"),
        (0, 10**9, "1000000000 metadata keys"),
        (2**60 + 1, 1, "1 metadata keys"),
    ],
)
def test_counts_beyond_the_file(tmp_path: Path, n_tensors: int, n_entries: int, what: str) -> None:
    content = b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_entries)
    assert what in refused(tmp_path, content)


def test_counts_above_the_limit_of_a_large_file(tmp_path: Path) -> None:
    content = b"GGUF" + struct.pack("<IQQ", 3, 0, MAX_KEYS + 1)
    assert "65537 metadata keys" in refused(tmp_path, content.ljust(1 << 20, b"\0"))
    content = b"GGUF" + struct.pack("<IQQ", 3, MAX_TENSORS + 1, 0)
    assert "65537 tensors" in refused(tmp_path, content.ljust(1 << 22, b"\0"))


@pytest.mark.parametrize("length", [0, 2**64 - 1, 2**63, 14])
def test_key_lengths(tmp_path: Path, length: int) -> None:
    content = gguf([string(b"a", length) + uint32(UINT8) + b"\1"], alignment=1)
    title = refused(tmp_path, content)
    assert "metadata key 0" in title
    assert "empty" in title if length == 0 else str(length) in title


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 4])
def test_string_lengths(tmp_path: Path, length: int) -> None:
    title = refused(tmp_path, gguf([entry(b"general.name", STRING, string(b"abc", length))], alignment=1))
    assert "general.name" in title and str(length) in title


def test_empty_string_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "empty string.gguf"
    path.write_bytes(gguf([entry(b"general.name", STRING, string(b""))], alignment=1))
    with GGUFFile.open(path) as file:
        assert file.metadata.get_string("general.name") == ""


@pytest.mark.parametrize("count", [2**64 - 1, 2**31, 4])
def test_array_counts(tmp_path: Path, count: int) -> None:
    content = gguf([entry(b"some.array", ARRAY, array(UINT8, count, b"abc"))], alignment=1)
    title = refused(tmp_path, content)
    assert "some.array" in title and str(count) in title


@pytest.mark.parametrize("count", [2**62, 2**61, 3])
def test_counts_of_strings(tmp_path: Path, count: int) -> None:
    items = string(b"ab") + string(b"cd")
    title = refused(tmp_path, gguf([entry(b"tokens", ARRAY, array(STRING, count, items))], alignment=1))
    assert "tokens" in title


def test_string_in_an_array_longer_than_the_file(tmp_path: Path) -> None:
    items = string(b"ab") + string(b"cd", 2**63) + string(b"ef")
    title = refused(tmp_path, gguf([entry(b"tokens", ARRAY, array(STRING, 3, items))], alignment=1))
    assert "tokens[1]" in title and str(2**63) in title


def test_many_short_strings_do_not_fill_the_memory(tmp_path: Path) -> None:
    """An empty string takes eight bytes of the file and many more in memory."""
    count = ALLOWANCE // STRING_OVERHEAD + 1
    content = gguf([entry(b"tokens", ARRAY, array(STRING, count))], alignment=1)
    title = refused(tmp_path, content.ljust(count * 9, b"\0"))
    assert f"tokens would take {count * STRING_OVERHEAD} bytes of memory" in title


def test_strings_within_the_allowance_before_a_fault(tmp_path: Path) -> None:
    """The worst case: as much as is allowed is read, and only then comes the fault."""
    count = ALLOWANCE // (STRING_OVERHEAD + 3)
    entries = [entry(b"tokens", ARRAY, array(STRING, count, string(b"abc") * count)), entry(b"odd", 77, b"")]
    assert "odd is of the unknown type 77" in refused(tmp_path, gguf(entries), time_limit=60)


def test_long_strings_do_not_fill_the_memory(tmp_path: Path) -> None:
    long = string(b"x" * (ALLOWANCE // 3))
    title = refused(tmp_path, gguf([entry(b"tokens", ARRAY, array(STRING, 4, long * 4))]))
    assert "the strings up to tokens[2] take more than" in title
    long = string(b"x" * (ALLOWANCE // (3 * COPIES)))
    title = refused(tmp_path, gguf([entry(key, STRING, long) for key in (b"a", b"b", b"c")]))
    assert "c would take" in title


@pytest.mark.parametrize("depth", [1, 2, 5000])
def test_nested_arrays(tmp_path: Path, depth: int) -> None:
    nested = array(UINT8, 0)
    for _ in range(depth):
        nested = array(ARRAY, 1, nested)
    assert "deep is an array of arrays" in refused(tmp_path, gguf([entry(b"deep", ARRAY, nested)]))


@pytest.mark.parametrize("type", [13, 255, 2**32 - 1])
def test_unknown_value_types(tmp_path: Path, type: int) -> None:
    title = refused(tmp_path, gguf([entry(b"some.key", type, b"\0" * 8)]))
    assert f"some.key is of the unknown type {type}" in title
    title = refused(tmp_path, gguf([entry(b"some.key", ARRAY, array(type, 1, b"\0" * 8))]))
    assert "some.key" in title and str(type) in title


@pytest.mark.parametrize(
    ("type", "value", "what"),
    [
        (UINT32, uint32(0), "is 0"),
        (UINT32, uint32(13), "is 13"),
        (UINT32, uint32(3), "is 3"),
        (UINT32, uint32(2**30), str(2**30)),
        (UINT32, uint32(2**31), str(2**31)),
        (INT32, uint32(32), "int32"),
        (UINT64, uint64(32), "uint64"),
        (STRING, string(b"32"), "string"),
        (ARRAY, array(UINT32, 1, uint32(32)), "array of uint32"),
    ],
)
def test_alignments(tmp_path: Path, type: int, value: bytes, what: str) -> None:
    title = refused(tmp_path, gguf([entry(b"general.alignment", type, value)], alignment=1))
    assert "general.alignment" in title and what in title


def test_alignment_zero_as_reported(tmp_path: Path) -> None:
    content = bytes.fromhex(
        "474755460300000000000000000000000100000000000000"
        "110000000000000067656e6572616c2e616c69676e6d656e740400000000000000"
    )
    assert len(content) == 57
    assert "general.alignment is 0" in refused(tmp_path, content)


@pytest.mark.parametrize("alignment", [1, 8, 32, 64])
def test_alignments_that_hold(tmp_path: Path, alignment: int) -> None:
    path = tmp_path / "aligned.gguf"
    entries = [entry(b"general.alignment", UINT32, uint32(alignment))]
    tensors = [tensor(b"a", [1]), tensor(b"b", [1], offset=max(4, alignment))]
    data = struct.pack("<f", 1.5).ljust(max(4, alignment), b"\0") + struct.pack("<f", 2.5)
    path.write_bytes(gguf(entries, tensors, data, alignment=alignment))
    with GGUFFile.open(path) as file:
        assert file.alignment == alignment
        assert [dequantise(part).tolist() for part in file.tensors.values()] == [[1.5], [2.5]]


@pytest.mark.parametrize(("n_dims", "given"), [(0, 0), (5, 5), (9, 1), (2**32 - 1, 1)])
def test_numbers_of_dimensions(tmp_path: Path, n_dims: int, given: int) -> None:
    content = gguf(tensors=[tensor(b"odd", [1] * given, n_dims=n_dims)], data=b"\0" * 64)
    assert f"tensor odd has {n_dims} dimensions" in refused(tmp_path, content)


def test_zero_dimension_as_reported(tmp_path: Path) -> None:
    content = base64.b64decode(
        "R0dVRgMAAAABAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAB0AgAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    )
    assert "dimension 1 of tensor t is 0" in refused(tmp_path, content)


def test_negative_dimension(tmp_path: Path) -> None:
    assert str(2**64 - 1) in refused(tmp_path, gguf(tensors=[tensor(b"t", [1, 2**64 - 1])]))


@pytest.mark.parametrize(
    ("lengths", "type"),
    [
        ([2**64 - 1, 2], F32),
        ([1152, 2**42 + 1], Q8_0),
        ([4, 1073741823, 1073741825, 1], F32),
        ([2**62 + 1], F32),
        ([2**63 - 1, 2], I8),
    ],
)
def test_sizes_that_wrap_64_bits(tmp_path: Path, lengths: list[int], type: int) -> None:
    sound = [tensor(b"before", [8]), tensor(b"after", [8], offset=64)]
    content = gguf(tensors=[sound[0], tensor(b"huge", lengths, type, 32), sound[1]], data=b"\0" * 96)
    assert "tensor huge" in refused(tmp_path, content)


def test_sum_of_sizes_that_wraps(tmp_path: Path) -> None:
    tensors = [tensor(name, [0x7FFFFFFFFFFFFFC0], I8) for name in (b"first", b"second")]
    assert "tensor first ends at" in refused(tmp_path, gguf(tensors=tensors))


def test_row_that_cuts_a_block(tmp_path: Path) -> None:
    title = refused(tmp_path, gguf(tensors=[tensor(b"cut", [33, 2], Q8_0)], data=b"\0" * 128))
    assert "rows of 33 of tensor cut" in title


SOUND = gguf(
    [entry(b"general.name", STRING, string(b"sound"))],
    [tensor(b"a", [8]), tensor(b"b", [8], offset=32)],
    bytes(range(64)),
)


def test_sound_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "sound.gguf"
    path.write_bytes(SOUND)
    with GGUFFile.open(path) as file:
        assert bytes(file.tensors["b"].data) == bytes(range(32, 64))


def test_file_cut_short(tmp_path: Path) -> None:
    title = refused(tmp_path, SOUND[:-1])
    assert f"data of tensor b ends at {len(SOUND)}, file has {len(SOUND) - 1}" in title
    title = refused(tmp_path, SOUND[:-64])
    assert f"data of tensor a ends at {len(SOUND) - 32}, file has {len(SOUND) - 64}" in title


@pytest.mark.parametrize("length", range(1, len(SOUND) - 64, 3))
def test_file_cut_short_anywhere(tmp_path: Path, length: int) -> None:
    refused(tmp_path, SOUND[:length])


@pytest.mark.parametrize(
    ("offset", "what"),
    [(2**64 - 32, "ends at"), (4, "offset 4 of tensor b is no multiple of 32"), (0, "a and b overlap")],
)
def test_offsets(tmp_path: Path, offset: int, what: str) -> None:
    tensors = [tensor(b"a", [8]), tensor(b"b", [8], offset=offset)]
    assert what in refused(tmp_path, gguf(tensors=tensors, data=b"\0" * 64))


def test_names_that_stand_twice(tmp_path: Path) -> None:
    tensors = [tensor(b"token_embd.weight", [8]), tensor(b"token_embd.weight", [8], offset=32)]
    title = refused(tmp_path, gguf(tensors=tensors, data=b"\0" * 64))
    assert "token_embd.weight stands twice" in title
    entries = [entry(b"general.architecture", STRING, string(name)) for name in (b"llama", b"gemma3")]
    assert "general.architecture stands twice" in refused(tmp_path, gguf(entries))


@pytest.mark.parametrize("name", [b"", b"\xff\xfe", b"line\nbreak", b"x" * 65])
def test_tensor_names(tmp_path: Path, name: bytes) -> None:
    assert "the name of tensor 0" in refused(tmp_path, gguf(tensors=[tensor(name, [8])], data=b"\0" * 32))


def test_unknown_tensor_type(tmp_path: Path) -> None:
    title = refused(tmp_path, gguf(tensors=[tensor(b"odd", [8], type=4)], data=b"\0" * 32))
    assert "tensor odd is of type 4" in title


def test_truth_value_that_is_neither(tmp_path: Path) -> None:
    assert "flag is 2" in refused(tmp_path, gguf([entry(b"flag", BOOL, b"\2")]))
    title = refused(tmp_path, gguf([entry(b"flags", ARRAY, array(BOOL, 3, b"\0\1\2"))]))
    assert "flags" in title
