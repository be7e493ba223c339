"""Which tokens end a reply: the ones that keys of the file name, and well-known texts by rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.tokenizers.token_kind import TokenKind

END_OF_GENERATION_TEXTS = frozenset(
    {
        "</s>",
        "<eos>",
        "<EOT>",
        "<end_of_turn>",
        "<end_of_utterance>",
        "<turn|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|im_end|>",
        "<|end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|eot|>",
        "<|eom|>",
        "<|end_of_turn|>",
        "<|END_OF_TURN_TOKEN|>",
        "[|endofturn|]",
        "<|return|>",
        "<|call|>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
    }
)
"""Texts by which model makers end a turn or a text; files often name only one of them as a key."""

_WITH_CHANNELS = frozenset({"<|return|>", "<|channel|>"})
_END_OF_MESSAGE = "<|end|>"
"""In Harmony (gpt-oss) a reply has several messages, thoughts and answer, each with this text at its end."""


def end_of_generation(
    texts: list[str], kinds: NDArray[np.uint8], keyed: set[int], template: str
) -> tuple[frozenset[int], tuple[str, ...]]:
    """Ids that end a reply, and warnings as whole sentences.

    texts[id], kinds[id] (of `TokenKind`); keyed: ids that keys of the file name.
    Known texts count where they are control tokens, and ordinary ones where the chat template uses them, for
    files converted wrongly.  Without the template's word a chat that merely quotes such a text would end.
    """
    found = set(keyed)
    warnings: list[str] = []
    marks = {texts[token] for token in np.flatnonzero(kinds == TokenKind.CONTROL).tolist()}
    ends = END_OF_GENERATION_TEXTS - ({_END_OF_MESSAGE} if marks >= _WITH_CHANNELS else set())
    known = [token for token, text in enumerate(texts) if text in ends]
    for token in known:
        text = texts[token]
        if token in found:
            continue
        if kinds[token] == TokenKind.CONTROL:
            found.add(token)
        elif kinds[token] == TokenKind.USER_DEFINED:
            # Gemma 3 has </s> as an HTML tag: a user-defined text counts only where no key names an end.
            if not keyed or text in template:
                found.add(token)
        elif kinds[token] == TokenKind.NORMAL and text in template:
            found.add(token)
            warnings.append(
                f"{text} is stored as ordinary text in this file; it is taken as the end of a reply."
            )
    return frozenset(found), tuple(dict.fromkeys(warnings))
