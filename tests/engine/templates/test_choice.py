"""Which template a file gets: its own, a named one, its family's, or none."""

from __future__ import annotations

import pytest

from engine.chat_template import ChatTemplate
from engine.errors import ModelFileError, TemplateError
from engine.gguf.metadata import Metadata
from engine.gguf.writer import infer_value
from engine.templates.choice import choose_template
from engine.templates.families import FAMILIES
from engine.templates.sample import CONVERSATION, sample_prompt
from tests.helpers.vocabularies import published, published_metadata

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4


def metadata(**values: object) -> Metadata:
    """Keys as in the file, with _ for the dots: tokenizer.chat_template is tokenizer__chat_template."""
    return Metadata({key.replace("__", "."): infer_value(value) for key, value in values.items()}, "m.gguf")


def vocabulary(marks: list[str], kind: int = CONTROL, eos: str = "", **values: object) -> Metadata:
    tokens = ["a", "b", *marks]
    values |= {
        "tokenizer__ggml__tokens": tokens,
        "tokenizer__ggml__token_type": [NORMAL, NORMAL, *[kind] * len(marks)],
    }
    if eos:
        values["tokenizer__ggml__eos_token_id"] = tokens.index(eos)
    return metadata(**values)


# Of the file


def test_the_default_of_the_file_comes_first() -> None:
    choice = choose_template(
        vocabulary(
            ["<|im_start|>", "<|im_end|>"],
            tokenizer__chat_template="own",
            tokenizer__chat_templates=["tool_use"],
            tokenizer__chat_template__tool_use="with tools",
        )
    )
    assert (choice.source, choice.name, choice.origin) == ("own", "default", "file")
    assert choice.in_file == ("default", "tool_use")


def test_a_named_template_can_be_chosen() -> None:
    named = metadata(tokenizer__chat_template="own", tokenizer__chat_template__tool_use="with tools")
    choice = choose_template(named, "tool_use")
    assert (choice.source, choice.name, choice.origin) == ("with tools", "tool_use", "file")
    assert choose_template(named, "chatml").origin == "family"
    assert choose_template(named, "default").source == "own"


def test_a_name_that_is_not_known_is_answered_by_those_that_are() -> None:
    with pytest.raises(TemplateError, match="nonsense") as caught:
        choose_template(metadata(tokenizer__chat_template__tool_use="x"), "nonsense")
    for name in ("tool_use", "chatml", "llama3"):
        assert name in caught.value.advice


def test_a_file_with_named_templates_only() -> None:
    choice = choose_template(
        metadata(
            tokenizer__chat_templates=["rag", "missing"],
            tokenizer__chat_template__rag="r",
            tokenizer__chat_template__other="o",
        )
    )
    assert (choice.source, choice.name, choice.in_file) == ("r", "rag", ("rag", "other"))


def test_an_empty_template_is_none() -> None:
    assert choose_template(metadata(tokenizer__chat_template=" \n")).origin == "none"


def test_a_template_that_is_no_text_is_an_error_of_the_file() -> None:
    for values in ({"tokenizer__chat_template": 3}, {"tokenizer__chat_templates": 3}):
        with pytest.raises(ModelFileError):
            choose_template(metadata(**values))


# Of the family


@pytest.mark.parametrize("family", [family for family in FAMILIES if family.marks and not family.words])
def test_marks_among_the_control_tokens_tell_the_family(family) -> None:  # type: ignore[no-untyped-def]
    marks = list(dict.fromkeys([*family.marks, *([family.end] if family.end else [])]))
    values = {"tokenizer__ggml__model": family.tokenizer or "gpt2"}
    if family.architectures:
        values["general__architecture"] = family.architectures[0]
    choice = choose_template(vocabulary(marks, **values))
    assert (choice.name, choice.source, choice.origin) == (family.name, family.source, "family")
    assert family.marks[0] in choice.reason
    assert choose_template(vocabulary(marks, USER_DEFINED, **values)).name == family.name
    for mark in family.marks:
        rest = [other for other in marks if other != mark]
        assert choose_template(vocabulary(rest, **values)).name != family.name


def test_ordinary_tokens_of_that_text_tell_nothing() -> None:
    assert choose_template(vocabulary(["<|im_start|>", "<|im_end|>"], NORMAL)).origin == "none"
    without_kinds = metadata(tokenizer__ggml__tokens=["<|im_start|>", "<|im_end|>"])
    assert choose_template(without_kinds).origin == "none"


def test_the_end_of_a_text_decides_between_families() -> None:
    """Fine-tunes of Llama 3 on ChatML keep the marks of both."""
    both = ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>"]
    assert choose_template(vocabulary(both, eos="<|im_end|>")).name == "chatml"
    assert choose_template(vocabulary(both, eos="<|eot_id|>")).name == "llama3"
    assert choose_template(vocabulary(both)).name == "llama3"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("TinyLlama 1.1B Chat v1.0", "zephyr"),
        ("zephyr-7b-beta", "zephyr"),
        ("Llama-2-7b-chat-hf", "llama2"),
        ("Mistral 7B Instruct v0.2", "mistral-v1"),
        ("Mixtral-8x7B-Instruct-v0.1", "mistral-v1"),
        ("OLMo 2 1B Instruct", ""),  # lacks <|endoftext|>
        ("TinyLlama 1.1B intermediate", ""),
        ("Llama 2 7B", ""),
        ("Llama 3 Chat", ""),
    ],
)
def test_formats_of_ordinary_text_are_told_by_the_models_name(name: str, family: str) -> None:
    marks = vocabulary(["<s>", "</s>"], general__name=name, tokenizer__ggml__model="llama")
    assert choose_template(marks).name == family
    assert choose_template(metadata(general__name=name)).origin == "none"


def test_values_that_only_help_to_guess_may_be_of_any_type() -> None:
    odd = vocabulary(
        ["<|im_start|>", "<|im_end|>"], general__name=3, tokenizer__ggml__model=[1], general__basename=True
    )
    assert choose_template(odd).name == "chatml"


def test_published_vocabularies() -> None:
    names = {
        name: choose_template(published_metadata(name)).name for name in ("qwen2", "llama-bpe", "falcon")
    }
    assert names == {"qwen2": "default", "llama-bpe": "llama3", "falcon": ""}


# What the families' templates write

SYSTEM, USER, REPLY, AGAIN = (message.content for message in CONVERSATION)
PROMPTS = {
    "deepseek": (
        "<s>{s}<|User|>{u}<|Assistant|>{a}<|end\u2581of\u2581sentence|><|User|>{v}<|Assistant|>".replace(
            "|", "\uff5c"
        )
    ),
    "harmony": (
        "<|start|>system<|message|>Reasoning: medium\n\n# Valid channels: analysis, commentary, final. "
        "Channel must be included for every message.<|end|>"
        "<|start|>developer<|message|># Instructions\n\n{s}<|end|><|start|>user<|message|>{u}<|end|>"
        "<|start|>assistant<|channel|>final<|message|>{a}<|end|><|start|>user<|message|>{v}<|end|>"
        "<|start|>assistant"
    ),
    "llama4": (
        "<s><|header_start|>system<|header_end|>\n\n{s}<|eot|><|header_start|>user<|header_end|>\n\n{u}<|eot|>"
        "<|header_start|>assistant<|header_end|>\n\n{a}<|eot|><|header_start|>user<|header_end|>\n\n{v}<|eot|>"
        "<|header_start|>assistant<|header_end|>\n\n"
    ),
    "llama3": (
        "<s><|start_header_id|>system<|end_header_id|>\n\n{s}<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\n{u}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n{a}<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\n{v}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    ),
    "phi4": (
        "<|im_start|>system<|im_sep|>{s}<|im_end|><|im_start|>user<|im_sep|>{u}<|im_end|>"
        "<|im_start|>assistant<|im_sep|>{a}<|im_end|><|im_start|>user<|im_sep|>{v}<|im_end|>"
        "<|im_start|>assistant<|im_sep|>"
    ),
    "chatml": (
        "<|im_start|>system\n{s}<|im_end|>\n<|im_start|>user\n{u}<|im_end|>\n"
        "<|im_start|>assistant\n{a}<|im_end|>\n<|im_start|>user\n{v}<|im_end|>\n<|im_start|>assistant\n"
    ),
    "gemma": (
        "<s><start_of_turn>user\n{s}\n\n{u}<end_of_turn>\n<start_of_turn>model\n{a}<end_of_turn>\n"
        "<start_of_turn>user\n{v}<end_of_turn>\n<start_of_turn>model\n"
    ),
    "phi4-mini": (
        "<|system|>{s}<|end|><|user|>{u}<|end|><|assistant|>{a}<|end|><|user|>{v}<|end|><|assistant|>"
    ),
    "phi3": (
        "<|system|>\n{s}<|end|>\n<|user|>\n{u}<|end|>\n<|assistant|>\n{a}<|end|>\n<|user|>\n{v}<|end|>\n"
        "<|assistant|>\n"
    ),
    "command-r": (
        "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>{s}<|END_OF_TURN_TOKEN|>"
        "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{u}<|END_OF_TURN_TOKEN|>"
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{a}<|END_OF_TURN_TOKEN|>"
        "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{v}<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
    ),
    "granite": (
        "<|start_of_role|>system<|end_of_role|>{s}<|end_of_text|>\n"
        "<|start_of_role|>user<|end_of_role|>{u}<|end_of_text|>\n"
        "<|start_of_role|>assistant<|end_of_role|>{a}<|end_of_text|>\n"
        "<|start_of_role|>user<|end_of_role|>{v}<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>"
    ),
    "exaone4": (
        "[|system|]\n{s}[|endofturn|]\n[|user|]\n{u}[|endofturn|]\n[|assistant|]\n{a}[|endofturn|]\n"
        "[|user|]\n{v}[|endofturn|]\n[|assistant|]\n<think>\n\n</think>\n\n"
    ),
    "exaone": (
        "[|system|]{s}[|endofturn|]\n[|user|]{u}\n[|assistant|]{a}[|endofturn|]\n[|user|]{v}\n[|assistant|]"
    ),
    "mistral-v7": "<s>[SYSTEM_PROMPT]{s}[/SYSTEM_PROMPT][INST]{u}[/INST]{a}</s>[INST]{v}[/INST]",
    "mistral-tekken": "<s>[INST]{s}\n\n{u}[/INST]{a}</s>[INST]{v}[/INST]",
    "mistral-v3": "<s>[INST] {s}\n\n{u}[/INST] {a}</s>[INST] {v}[/INST]",
    "mistral-v1": "<s>[INST] {s}\n\n{u} [/INST] {a}</s>[INST] {v} [/INST]",
    "llama2": "<s>[INST] <<SYS>>\n{s}\n<</SYS>>\n\n{u} [/INST] {a} </s><s>[INST] {v} [/INST]",
    "zephyr": (
        "<|system|>\n{s}</s>\n<|user|>\n{u}</s>\n<|assistant|>\n{a}</s>\n<|user|>\n{v}</s>\n<|assistant|>\n"
    ),
    "olmo": "<s><|system|>\n{s}\n<|user|>\n{u}\n<|assistant|>\n{a}</s>\n<|user|>\n{v}\n<|assistant|>\n",
}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_prompts_of_the_families(family) -> None:  # type: ignore[no-untyped-def]
    ends = metadata(
        tokenizer__ggml__tokens=["<s>", "</s>"],
        tokenizer__ggml__bos_token_id=0,
        tokenizer__ggml__eos_token_id=1,
    )
    expected = PROMPTS[family.name].format(s=SYSTEM, u=USER, a=REPLY, v=AGAIN)
    assert sample_prompt(family.source, ends) == expected


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_system_text_alone_is_never_lost(family) -> None:  # type: ignore[no-untyped-def]
    template = ChatTemplate(family.source, bos_text="<s>", eos_text="</s>")
    for messages in ([("system", "S")], [("system", "S"), ("user", "U")], [("user", "U"), ("user", "V")]):
        prompt = "".join(
            segment.text
            for segment in template.render([{"role": role, "content": text} for role, text in messages])
        )
        assert all(text in prompt for _, text in messages)


def test_a_family_template_becomes_control_tokens_of_the_vocabulary() -> None:
    tokenizer = published("llama-bpe")
    template = ChatTemplate.from_tokenizer(tokenizer, choose_template(published_metadata("llama-bpe")).source)
    assert template is not None
    segments = template.render([{"role": "user", "content": "hi<|eot_id|>"}])
    ids = tokenizer.encode_segments(segments, add_special=True)
    # begin of text; header, "user", header, two line ends; the words; end of turn; header ... two line ends
    assert ids[:5] == [128000, 128006, 882, 128007, 271]
    assert ids[-5:] == [128009, 128006, 78191, 128007, 271]
    assert ids.count(128009) == 1


def test_a_sample_needs_no_vocabulary() -> None:
    assert sample_prompt("{{ bos_token }}{{ messages[0].content }}", metadata()) == SYSTEM
