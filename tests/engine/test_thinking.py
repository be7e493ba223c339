"""Replies of models that think aloud, from the prompt to the last record."""

from __future__ import annotations

from typing import Any

import pytest

from engine.backends.fake import FakeBehaviour
from engine.chat_template import ChatTemplate
from engine.errors import NoAllowedTokenError
from engine.generation import chat, generate
from engine.grammar.gbnf import read_gbnf
from engine.requests import ChatRequest, CompletionRequest, Finished, Message, TextPiece
from engine.sampling.settings import SamplingSettings
from engine.session import Session
from engine.templates.families import FAMILIES
from engine.tokenizers import Tokenizer, load_tokenizer
from tests.helpers.fake_chat import GREEDY
from tests.helpers.fake_model import FakeModel
from tests.helpers.vocabularies import CONTROL, NORMAL, USER_DEFINED, byte_pair_metadata

THINKER = (
    "{% for m in messages %}{{ m.content.split('</think>')[-1] + '<|im_end|>' }}{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\n\n</think>\n\n' }}"
    "{% elif enable_thinking is defined %}{{ '<think>\n' }}{% endif %}"
)
HARMONY = next(family.source for family in FAMILIES if family.name == "harmony")
TEXTS = {
    "think": ["<think>", "</think>", "<|im_end|>"],
    "harmony": ["<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|return|>"],
}


def thinker(template: str, marks: list[str], reply: str, kind: int = CONTROL) -> tuple[Tokenizer, FakeModel]:
    """A model that says reply, in which marks are tokens."""
    extra = [(text, kind) for text in marks[:-1]] + [(marks[-1], CONTROL)]
    metadata = byte_pair_metadata(["a b"], extra, eos_token_id=257 + len(marks) - 1, chat_template=template)
    tokenizer = load_tokenizer(metadata)
    script = tokenizer.encode(reply, parse_special=True)
    model = FakeModel(
        n_vocabulary=tokenizer.n_tokens,
        context_size=600,
        tokenizer=tokenizer,
        template=ChatTemplate.from_tokenizer(tokenizer),
        behaviour=FakeBehaviour(script=script),
    )
    return tokenizer, model


def ask(model: FakeModel, text: str = "Hi", **request: Any) -> tuple[list[TextPiece], Finished]:
    session = Session(model)  # type: ignore[arg-type]
    asked = ChatRequest((Message("user", text),), **{"sampling": GREEDY, **request})
    records = list(chat(session, asked, lambda: False))
    finished = records[-1]
    assert isinstance(finished, Finished)
    pieces = [record for record in records if isinstance(record, TextPiece)]
    assert "".join(piece.text for piece in pieces) + finished.tail == finished.text
    return pieces, finished


@pytest.mark.parametrize("kind", [CONTROL, USER_DEFINED, NORMAL])
def test_tags_of_any_kind_of_token(kind: int) -> None:
    _, model = thinker(THINKER, TEXTS["think"], "<think>\nhm, hm\n</think>\n\nHello<|im_end|>", kind)
    pieces, finished = ask(model)
    assert (finished.text, finished.thoughts, finished.reason) == ("Hello", "hm, hm", "stop")
    assert "".join(piece.thoughts for piece in pieces).strip() == "hm, hm"
    assert finished.ids == tuple(piece.token for piece in pieces)


def test_channels() -> None:
    said = (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>"
    )
    tokenizer, model = thinker(HARMONY, TEXTS["harmony"], said)
    _, finished = ask(model)
    assert (finished.text, finished.thoughts, finished.reason) == ("Hello", "hm", "stop")
    assert len(finished.ids) == len(tokenizer.encode(said, parse_special=True)) - 1


def test_a_prompt_that_opens_the_thoughts() -> None:
    _, model = thinker(THINKER, TEXTS["think"], "hm</think>Hello<|im_end|>")
    assert ask(model, thinking=True)[1].thoughts == "hm"
    assert ask(model, thinking=True)[1].text == "Hello"
    assert ask(model)[1].text == "hmHello", "nothing opened them, and a control token is not shown"


def test_thinking_can_be_switched_off() -> None:
    _, model = thinker(THINKER, TEXTS["think"], "Hello<|im_end|>")
    _, finished = ask(model, thinking=False)
    assert (finished.text, finished.thoughts) == ("Hello", "")


def test_a_limit_within_the_thoughts_keeps_them() -> None:
    _, model = thinker(THINKER, TEXTS["think"], "<think>long thoughts</think>Hello<|im_end|>")
    _, finished = ask(model, max_tokens=6)
    assert (finished.text, finished.tail, finished.reason) == ("", "", "length")
    assert finished.thoughts == "long"


def test_stop_strings_are_for_the_answer() -> None:
    _, model = thinker(THINKER, TEXTS["think"], "<think>No STOP yet</think>Hello STOP x<|im_end|>")
    _, finished = ask(model, stop=("STOP",))
    assert (finished.text, finished.thoughts, finished.reason) == ("Hello ", "No STOP yet", "stop")


def test_what_a_grammar_describes_is_all_answer() -> None:
    _, model = thinker(THINKER, TEXTS["think"], "<think>hm</think>yes<|im_end|>")
    _, finished = ask(model, grammar=read_gbnf('root ::= "yes" | "no"'))
    assert finished.text in ("yes", "no") and finished.thoughts == ""


def test_a_raw_continuation_is_never_split() -> None:
    tokenizer, model = thinker(THINKER, TEXTS["think"], "<think>hm</think>x<|im_end|>", NORMAL)
    request = CompletionRequest(tuple(tokenizer.encode("ab", parse_special=False)), GREEDY)
    finished = list(generate(Session(model), request, lambda: False))[-1]  # type: ignore[arg-type]
    assert isinstance(finished, Finished) and finished.text == "<think>hm</think>x"


def test_bans_that_leave_nothing_end_the_reply_with_an_error() -> None:
    tokenizer, model = thinker(THINKER, TEXTS["think"], "x")
    everything = SamplingSettings(banned_tokens=frozenset(range(tokenizer.n_tokens)))
    with pytest.raises(NoAllowedTokenError):
        ask(model, sampling=everything)


def test_dry_looks_at_texts_and_never_across_turns() -> None:
    """A "d" would repeat "abcd", but for a breaker or a control token before it."""
    dry = SamplingSettings(temperature=0, dry_multiplier=1e6, dry_sequence_breakers=("#",))
    for prompt, repeats in (("abcd.abc", False), ("abcd.a#c", True), ("abcd.ab<|im_end|>c", True)):
        tokenizer, model = thinker(THINKER, TEXTS["think"], "d<|im_end|>")
        ids = tuple(tokenizer.encode(prompt, parse_special=True))
        request = CompletionRequest(ids, dry, max_tokens=1)
        finished = list(generate(Session(model), request, lambda: False))[-1]  # type: ignore[arg-type]
        assert isinstance(finished, Finished)
        assert (finished.text == "d") == repeats, prompt
