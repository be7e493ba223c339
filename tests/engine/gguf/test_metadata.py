"""The getters: types, ranges and missing keys, each told by name."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.gguf.metadata import Metadata, MetadataValue, ValueType
from engine.gguf.values import infer_value

VALUES = {
    "int": 5,
    "float": 0.25,
    "nan": float("nan"),
    "bool": True,
    "string": "text",
    "broken": b"\xff",
    "ints": [1, 2, 3],
    "floats": [1.5],
    "strings": ["a", "b"],
    "broken strings": ["a", b"b\xff"],
    "huge": np.array([1, 2**63], np.uint64),
}


@pytest.fixture
def metadata() -> Metadata:
    return Metadata({key: infer_value(value) for key, value in VALUES.items()}, "m.gguf")


@pytest.mark.parametrize(
    ("getter", "key", "kind"),
    [
        ("get_int", "float", "float32"),
        ("get_int", "bool", "bool"),
        ("get_int", "string", "string"),
        ("get_int", "ints", "array of int32"),
        ("get_float", "int", "uint32"),
        ("get_bool", "int", "uint32"),
        ("get_string", "int", "uint32"),
        ("get_string", "strings", "array of string"),
        ("get_ints", "int", "uint32"),
        ("get_ints", "floats", "array of float32"),
        ("get_ints", "strings", "array of string"),
        ("get_floats", "ints", "array of int32"),
        ("get_bools", "ints", "array of int32"),
        ("get_strings", "ints", "array of int32"),
        ("get_byte_strings", "string", "string"),
        ("length", "string", "string"),
    ],
)
def test_wrong_type(metadata: Metadata, getter: str, key: str, kind: str) -> None:
    with pytest.raises(ModelFileError, match=rf"^m\.gguf: {key} is of type {kind}, not ") as caught:
        getattr(metadata, getter)(key)
    assert caught.value.advice


@pytest.mark.parametrize(
    "getter",
    ["get_int", "get_float", "get_bool", "get_string", "get_ints", "get_floats", "get_bools", "get_strings",
     "get_byte_strings", "length"],
)  # fmt: skip
def test_missing_key(metadata: Metadata, getter: str) -> None:
    with pytest.raises(ModelFileError, match=r"m\.gguf: the metadata lacks no\.such\.key"):
        getattr(metadata, getter)("no.such.key")


def test_defaults(metadata: Metadata) -> None:
    assert metadata.get_int("missing", 0) == 0
    assert metadata.get_float("missing", 0.0) == 0.0
    assert metadata.get_bool("missing", False) is False
    assert metadata.get_string("missing", "") == ""
    assert metadata.get_int("int", 9) == 5
    with pytest.raises(ModelFileError, match="of type string"):
        metadata.get_int("string", 0)


def test_ranges(metadata: Metadata) -> None:
    assert metadata.get_int("int", minimum=5, maximum=5) == 5
    with pytest.raises(ModelFileError, match="int is 5; the least possible is 6"):
        metadata.get_int("int", minimum=6)
    with pytest.raises(ModelFileError, match="int is 5; the most possible is 0"):
        metadata.get_int("int", maximum=0)
    with pytest.raises(ModelFileError, match=r"float is 0\.25; the most possible is 0\.1"):
        metadata.get_float("float", maximum=0.1)
    with pytest.raises(ModelFileError, match="nan is nan, which is no finite number"):
        metadata.get_float("nan")
    with pytest.raises(ModelFileError, match="ints is 1; the least possible is 2"):
        metadata.get_ints("ints", minimum=2)
    with pytest.raises(ModelFileError, match="ints is 3; the most possible is 0"):
        metadata.get_ints("ints", maximum=0)


def test_integers_that_do_not_fit(metadata: Metadata) -> None:
    for maximum in (None, 2**64):
        with pytest.raises(ModelFileError, match=f"huge is {2**63}; the most possible is {2**63 - 1}"):
            metadata.get_ints("huge", maximum=maximum)


def test_text_that_is_no_utf8(metadata: Metadata) -> None:
    with pytest.raises(ModelFileError, match="broken is no UTF-8 text"):
        metadata.get_string("broken")
    with pytest.raises(ModelFileError, match=r"broken strings\[1\] is no UTF-8 text \(at byte 1\)"):
        metadata.get_strings("broken strings")
    assert metadata.get_byte_strings("broken strings") == [b"a", b"b\xff"]


def test_per_layer(metadata: Metadata) -> None:
    assert metadata.get_int_per_layer("int", 3) == [5, 5, 5]
    assert metadata.get_int_per_layer("ints", 3) == [1, 2, 3]
    assert metadata.get_int_per_layer("missing", 2, 8) == [8, 8]
    with pytest.raises(ModelFileError, match="ints has 3 entries for 4 layers"):
        metadata.get_int_per_layer("ints", 4)
    with pytest.raises(ModelFileError, match="ints is 3; the most possible is 2"):
        metadata.get_int_per_layer("ints", 3, maximum=2)


def test_changes_do_not_reach_the_metadata(metadata: Metadata) -> None:
    metadata.get_byte_strings("strings").clear()
    metadata.get_ints("ints")[:] = 0
    assert metadata.length("strings") == 2
    assert metadata.get_ints("ints").tolist() == [1, 2, 3]


def test_empty_arrays() -> None:
    empty = MetadataValue(ValueType.ARRAY, np.array([], np.int32), ValueType.INT32)
    metadata = Metadata({"empty": empty}, "m.gguf")
    assert metadata.get_ints("empty", minimum=1).tolist() == []
