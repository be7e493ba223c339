"""Asking for the family of a model whose file has no chat template."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.commands.template_options import require_template
from engine.chat_template import ChatTemplate
from engine.errors import TemplateError
from engine.templates.families import FAMILIES
from tests.helpers.fake_model import FakeModel
from tests.helpers.vocabularies import published


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(tokenizer=published("qwen2"), path=Path("base.gguf"))


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: text)


def test_the_family_that_is_named_is_used(model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, " chatml ")
    require_template(model, may_ask=True)  # type: ignore[arg-type]
    assert model.template is not None
    prompt = "".join(part.text for part in model.template.render([{"role": "user", "content": "Hi"}]))
    assert prompt == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("text", ["", "nonsense"])
def test_an_answer_that_names_none_is_told_the_names(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    answer(monkeypatch, text)
    with pytest.raises(TemplateError) as caught:
        require_template(model, may_ask=True)  # type: ignore[arg-type]
    assert all(family.name in caught.value.advice for family in FAMILIES)


def test_an_end_of_the_input_is_no_answer(model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    with pytest.raises(TemplateError):
        require_template(model, may_ask=True)  # type: ignore[arg-type]


def test_a_model_with_a_template_asks_nothing(model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model.template = template = ChatTemplate("{{ messages[0].content }}")
    require_template(model, may_ask=True)  # type: ignore[arg-type]
    assert model.template is template
