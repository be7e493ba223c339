"""Tokenizers: text to token ids and back, by the vocabulary in a model file."""

from engine.tokenizers.loading import load_tokenizer
from engine.tokenizers.outline import TokenizerOutline, outline_tokenizer
from engine.tokenizers.streaming import StreamingDetokenizer
from engine.tokenizers.tokenizer import PromptSegment, Tokenizer

__all__ = [
    "PromptSegment",
    "StreamingDetokenizer",
    "Tokenizer",
    "TokenizerOutline",
    "load_tokenizer",
    "outline_tokenizer",
]
