"""What a chat template makes of a short conversation: for people who look at a model file."""

from __future__ import annotations

from engine.chat_template import ChatTemplate
from engine.gguf.metadata import Metadata
from engine.requests import Message

CONVERSATION = (
    Message("system", "Answer briefly."),
    Message("user", "Hello!"),
    Message("assistant", "Good day."),
    Message("user", "Who are you?"),
)


def sample_prompt(source: str, metadata: Metadata) -> str:
    """`CONVERSATION` as the template writes it, up to where the reply begins.

    Needs no vocabulary but the texts of BOS and EOS.  Raises TemplateError, and ModelFileError where the
    metadata contradict themselves.
    """
    template = ChatTemplate(source, bos_text=_text(metadata, "bos"), eos_text=_text(metadata, "eos"))
    return "".join(segment.text for segment in template.render(CONVERSATION))


def _text(metadata: Metadata, name: str) -> str:
    key = f"tokenizer.ggml.{name}_token_id"
    if key not in metadata or "tokenizer.ggml.tokens" not in metadata:
        return ""
    token = metadata.get_int(key)
    texts = metadata.get_byte_strings("tokenizer.ggml.tokens")
    return texts[token].decode("utf-8", "replace") if 0 <= token < len(texts) else ""
