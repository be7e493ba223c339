"""A tiny chat model on the fake backend, that recites what a test tells it."""

from engine.backends.fake import FakeBehaviour
from engine.chat_template import ChatTemplate
from engine.gguf.reader import GGUFFile
from engine.requests import SamplingSettings
from engine.tokenizers import load_tokenizer
from tests.helpers.fake_model import FakeModel
from tests.helpers.tiny_model import END_OF_MESSAGE, write_tiny_model

GREEDY = SamplingSettings(temperature=0, repetition_penalty=1)


def tiny_tokenizer(folder):
    with GGUFFile.open(write_tiny_model(folder / "vocabulary.gguf")) as file:
        return load_tokenizer(file.metadata)


def chat_model(tokenizer, reply="", *, ends=True, behaviour=None, **model):
    """A model that answers every prompt with reply, and ends it like a chat model where told so."""
    behaviour = behaviour or FakeBehaviour()
    if reply:
        behaviour.script = script_of(tokenizer, reply, ends=ends)
    template = ChatTemplate.from_tokenizer(tokenizer)
    return FakeModel(tokenizer=tokenizer, template=template, behaviour=behaviour, **model)


def script_of(tokenizer, reply, *, ends=True):
    ids = list(reply) if not isinstance(reply, str) else tokenizer.encode(reply, parse_special=False)
    return [*ids, END_OF_MESSAGE] if ends else ids
