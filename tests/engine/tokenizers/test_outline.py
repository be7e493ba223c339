"""What is told of a vocabulary without building it is what building it says."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import CauserieError
from engine.gguf.metadata import Metadata
from engine.tokenizers import load_tokenizer, outline_tokenizer, tables
from engine.tokenizers.outline import KINDS
from tests.helpers.vocabularies import PUBLISHED, byte_pair_metadata, published, published_metadata
from tests.helpers.vocabularies import sentence_piece_metadata as sentence_piece

FLAGS = sorted({name for names in tables.FLAGS.values() for name in names})

DAMAGED = {
    "no-merges": byte_pair_metadata(["a b"], merges=None),
    "merges-of-numbers": byte_pair_metadata(["a b"], merges=[1, 2]),
    "scores-too-few": byte_pair_metadata(["a b"], scores=[0.0] * 3),
    "scores-of-integers": byte_pair_metadata(["a b"], scores=[0] * 257),
    "flag-of-a-number": byte_pair_metadata(["a b"], add_bos_token=1),
    "kinds-too-few": byte_pair_metadata(["a b"], token_type=[1] * 3),
    "kinds-of-bytes": byte_pair_metadata(["a b"], token_type=np.ones(257, np.uint8)),
    "tokens-of-numbers": byte_pair_metadata(["a b"], tokens=[1] * 257),
    "id-of-text": byte_pair_metadata(["a b"], eos_token_id="2"),
    "pieces-without-scores": sentence_piece([("ab", 1.0)], scores=None),
    "pieces-with-few-scores": sentence_piece([("ab", 1.0)], scores=[0.0] * 3),
    "scores-no-numbers": sentence_piece([("ab", float("nan"))]),
    "byte-without-a-number": sentence_piece([], extra=[("<byte>", 6)]),
    "another-kind": byte_pair_metadata(["a b"], model="zork"),
    "no-kind": byte_pair_metadata(["a b"], model=None),
}
DOUBTFUL = {
    "merge-without-a-space": byte_pair_metadata(["a b", "cd"]),
    "merge-without-a-token": byte_pair_metadata(["a b", "c d"], tokens=["ab"], token_type=[1]),
    "id-beyond-the-end": byte_pair_metadata(["a b"], eos_token_id=257),
    "no-rule": byte_pair_metadata(["a b"], pre=None),
    "unknown-rule": byte_pair_metadata(["a b"], pre="frobnicate"),
    "end-as-text": byte_pair_metadata(["a b"], [("</s>", 1)] * 3, chat_template="{{ '</s>' }}"),
}


@pytest.mark.parametrize("metadata", DAMAGED.values(), ids=DAMAGED)
def test_refusals(metadata: Metadata) -> None:
    with pytest.raises(CauserieError) as told:
        outline_tokenizer(metadata)
    with pytest.raises(type(told.value)) as loaded:
        load_tokenizer(metadata)
    assert str(told.value) == str(loaded.value)
    assert "made-up.gguf" in told.value.title or "Token" in told.value.title


@pytest.mark.parametrize("metadata", DOUBTFUL.values(), ids=DOUBTFUL)
def test_warnings(metadata: Metadata) -> None:
    tokenizer = load_tokenizer(metadata)
    assert sorted(outline_tokenizer(metadata).warnings) == sorted(tokenizer.warnings)
    assert len(tokenizer.warnings) == len(set(tokenizer.warnings)) >= 1


def test_a_key_that_the_kind_does_not_ask_for_does_no_harm() -> None:
    metadata = byte_pair_metadata(["a b"], add_space_prefix=1)
    assert outline_tokenizer(metadata).warnings == load_tokenizer(metadata).warnings == ()


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("model", KINDS)
def test_flags(model: str, name: str) -> None:
    """Refused by both or by neither."""
    values: dict[str, object] = {"model": model, "unknown_token_id": 0, "scores": [0.0] * 257, name: 1}
    metadata = byte_pair_metadata(["a b"], (), **values)
    said = []
    for build in (outline_tokenizer, load_tokenizer):
        try:
            build(metadata)
            said.append("")
        except CauserieError as error:
            said.append(error.title)
    assert said[0] == said[1] and (not said[0] or name in said[0])


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_vocabularies_are_without_doubt(name: str) -> None:
    assert outline_tokenizer(published_metadata(name)).warnings == published(name).warnings == ()
