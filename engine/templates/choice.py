"""Which chat template a model file gets, and why: its own, one of its named ones, or that of its family.

Keys as converters write them: `tokenizer.chat_template`, and further ones as `tokenizer.chat_template.NAME`
with their names in `tokenizer.chat_templates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.errors import ModelFileError, TemplateError
from engine.gguf.metadata import Metadata
from engine.templates.families import FAMILIES, Family
from engine.tokenizers.vocabulary import TokenKind

DEFAULT = "default"
_KEY = "tokenizer.chat_template"
_NAMES_KEY = "tokenizer.chat_templates"
_NAME_KEYS = ("general.name", "general.basename", "general.finetune")


@dataclass(frozen=True, slots=True)
class TemplateChoice:
    """source: Jinja2, "" where there is none.

    name: "default" or the file's own name for it, such as "tool_use"; or the name of a family.
    origin: where it came from.
    reason: one whole sentence for a person.
    in_file: names of all templates of the file.
    """

    source: str
    name: str
    origin: Literal["file", "family", "none"]
    reason: str
    in_file: tuple[str, ...] = ()


def choose_template(metadata: Metadata, name: str = "") -> TemplateChoice:
    """The template of a model file by its metadata alone.

    name: one of the file's templates or of `FAMILIES`, if somebody asks for it.
    Raises TemplateError where there is none of that name, ModelFileError where a template is no text.
    """
    sources = file_templates(metadata)
    names = tuple(sources)
    if name:
        return _named(name, sources)
    if DEFAULT in sources:
        return TemplateChoice(sources[DEFAULT], DEFAULT, "file", "The file has it.", names)
    if sources:
        return TemplateChoice(
            sources[names[0]],
            names[0],
            "file",
            "It is the first of the file, none of which is the default.",
            names,
        )
    family = family_by_vocabulary(metadata)
    if family is not None:
        return TemplateChoice(family.source, family.name, "family", _why(family))
    return TemplateChoice(
        "", "", "none", "The file has no chat template, and its vocabulary shows none of a known family."
    )


def file_templates(metadata: Metadata) -> dict[str, str]:
    """Name to source of every template in the file, in its order, empty ones left out."""
    sources = {}
    if _KEY in metadata:
        sources[DEFAULT] = metadata.get_string(_KEY)
    names = metadata.get_strings(_NAMES_KEY) if _NAMES_KEY in metadata else []
    prefix = _KEY + "."
    # Some writers leave out the list of names.
    names += [key.removeprefix(prefix) for key in metadata if key.startswith(prefix)]
    for name in dict.fromkeys(names):
        if name not in sources and prefix + name in metadata:
            sources[name] = metadata.get_string(prefix + name)
    return {name: source for name, source in sources.items() if source.strip()}


def family_by_vocabulary(metadata: Metadata) -> Family | None:
    """The family whose marks are control tokens of this vocabulary.

    A format that marks turns by ordinary text is only taken where the model's name says so.
    """
    controls = _control_texts(metadata)
    name = "".join(_text(metadata, key) for key in _NAME_KEYS).casefold()
    for mark in "-_ .":
        name = name.replace(mark, "")
    tokenizer, architecture = _text(metadata, "tokenizer.ggml.model"), _text(metadata, "general.architecture")
    fitting = [family for family in FAMILIES if family.fits(controls.keys(), name, tokenizer, architecture)]
    eos = metadata.get_int("tokenizer.ggml.eos_token_id", -1)
    by_end = [family for family in fitting if controls.get(family.end) == eos]
    return next(iter(by_end or fitting), None)


def family_template(name: str, also_known: Sequence[str] = ()) -> Family:
    """The family of this name.  Raises TemplateError, which lists the names, also_known ones among them."""
    for family in FAMILIES:
        if family.name == name:
            return family
    known = ", ".join([*also_known, *(family.name for family in FAMILIES)])
    raise TemplateError(f"There is no chat template called {name!r}.", f"Choose one of these: {known}.")


def _named(name: str, sources: dict[str, str]) -> TemplateChoice:
    names = tuple(sources)
    if name in sources:
        return TemplateChoice(sources[name], name, "file", "It was asked for by name.", names)
    family = family_template(name, names)
    return TemplateChoice(family.source, name, "family", "It was asked for by name.", names)


def _why(family: Family) -> str:
    shown = f"its name says {family.name}" if family.words else f"its vocabulary has {family.marks[0]}"
    return (
        f"The file has no chat template; that of the family {family.name} is used, since {shown}. "
        "A model that was not trained to chat will answer nonsense."
    )


def _control_texts(metadata: Metadata) -> dict[str, int]:
    """Text to id of control and user-defined tokens."""
    tokens_key, kinds_key = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
    if tokens_key not in metadata or kinds_key not in metadata:
        return {}
    tokens, kinds = metadata.get_byte_strings(tokens_key), metadata.get_ints(kinds_key)
    ids = np.flatnonzero((kinds == TokenKind.CONTROL) | (kinds == TokenKind.USER_DEFINED))
    return {tokens[token].decode("utf-8", "replace"): token for token in ids.tolist() if token < len(tokens)}


def _text(metadata: Metadata, key: str) -> str:
    """A string that only helps to guess: "" where it is missing or of another type."""
    try:
        return metadata.get_string(key, "")
    except ModelFileError:
        return ""
