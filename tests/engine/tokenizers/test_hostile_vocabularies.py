"""Whatever stands in a vocabulary: a typed error, or a tokenizer that encodes, decodes and streams."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CauserieError
from engine.gguf.metadata import Metadata, MetadataValue, ValueType
from engine.gguf.values import infer_value
from engine.tokenizers import StreamingDetokenizer, load_tokenizer

TEXTS = ("ab  a▁<x>\n", "é日🦙\u0301 Ab.", "", "   ", "<0x41> \\x00 [UNK] a\ud800")
PIECES = st.sampled_from(
    [
        b"",
        b"a",
        b"b",
        b"ab",
        b" ",
        b"\xff",
        b"\xe2\x96\x81",
        b"\xe2\x96\x81a",
        b"<x>",
        b"\\x",
        b"<0x61>",
        b"\n",
    ]
)
NUMBERS = st.integers(0, 4) | st.integers(-2, 12) | st.sampled_from([-(2**31), 2**31 - 1])


def strings(items: list[bytes]) -> MetadataValue:
    return MetadataValue(ValueType.ARRAY, items, ValueType.STRING)


@st.composite
def vocabularies(draw: st.DrawFn, model: str) -> Metadata:
    tokens = draw(st.lists(PIECES | st.binary(max_size=4), min_size=1, max_size=10))
    n = draw(st.sampled_from([len(tokens)] * 9 + [len(tokens) - 1]))
    kinds = draw(st.lists(st.sampled_from([1, 1, 1, 2, 3, 4, 5]), min_size=n, max_size=n))
    scores = draw(st.lists(st.floats(-20, 20, width=32), min_size=n, max_size=n))
    if n and draw(st.integers(0, 5)) == 0:
        kinds[0] = draw(st.sampled_from([6, 9, -1]))
        scores[0] = draw(st.sampled_from([float("nan"), float("-inf"), 1e38]))
    values: dict[str, MetadataValue] = {
        "model": infer_value(model),
        "tokens": strings(tokens),
        "merges": strings(draw(st.lists(st.tuples(PIECES, PIECES).map(b" ".join) | PIECES, max_size=6))),
    }
    if n:
        values["token_type"] = infer_value(kinds)
        values["scores"] = infer_value(scores)
    for name in ("bos", "eos", "unknown", "seperator", "cls", "padding", "eot"):
        if name == "unknown" or draw(st.booleans()):
            values[f"{name}_token_id"] = infer_value(draw(NUMBERS))
    for name in ("add_bos_token", "add_eos_token", "add_space_prefix", "remove_extra_whitespaces"):
        if draw(st.booleans()):
            values[name] = infer_value(draw(st.booleans()))
    wrong: list[Any] = [5, 1.5, "x", True, [1], ["a"]]
    if draw(st.integers(0, 7)) == 0:
        values[draw(st.sampled_from(sorted(values)))] = infer_value(draw(st.sampled_from(wrong)))
    values["pre"] = infer_value(draw(st.sampled_from(["gpt-2", "llama-bpe", "gemma4", "no-such-rule", ""])))
    return Metadata({f"tokenizer.ggml.{name}": value for name, value in values.items()}, "hostile.gguf")


@pytest.mark.parametrize("model", ["gpt2", "gemma4", "llama", "bert", "t5", "rwkv"])
@given(data=st.data())
def test_a_typed_error_or_a_tokenizer(model: str, data: st.DataObject) -> None:
    try:
        tokenizer = load_tokenizer(data.draw(vocabularies(model)))
    except CauserieError as error:
        assert str(error)
        return
    for text in TEXTS:
        for parse_special in (False, True):
            ids = tokenizer.encode(text, parse_special=parse_special, add_special=parse_special)
            assert all(0 <= token < tokenizer.n_tokens for token in ids)
            detokenizer = StreamingDetokenizer(tokenizer)
            streamed = "".join([*map(detokenizer.push, ids), detokenizer.finish()])
            assert streamed == tokenizer.decode(ids)
            assert all(isinstance(tokenizer.token_text(token), str) for token in ids)
            if not parse_special:  # BERT's token for unknown words is marked as a control token
                assert not (tokenizer.control_ids - {tokenizer.unk_id}) & set(ids)
