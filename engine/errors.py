"""Every error the engine raises on purpose: each has a title and a next step.

The program shows ``title`` and ``advice`` to a person, in the window or as ``error: title`` in a
terminal, so both are whole sentences without Python words in them.  Exceptions of other libraries
are turned into one of these at the border (`raise ModelFileError(...) from error`).

This file imports nothing, so that anything may import it.
"""

from __future__ import annotations


class CauserieError(Exception):
    """The root of the tree.

    title:  one short sentence: what is wrong, naming the file, field or value.
    advice: one short sentence: what the person can do next.  Empty only where nothing can be done.
    """

    default_advice = ""

    def __init__(self, title: str, advice: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.advice = advice or self.default_advice

    def __str__(self) -> str:
        return f"{self.title} {self.advice}".strip()


class ModelFileError(CauserieError):
    """The file is missing, unreadable, damaged, or no GGUF at all."""

    default_advice = "Download the model again, or choose another file."


class ModelWriteError(CauserieError):
    """A model file cannot be written: the disk is full, the folder is missing or read-only."""

    default_advice = "Look at the free space of the disk and at the permissions of the folder."


class UnsupportedModelError(CauserieError):
    """A sound file that this engine cannot run (family, quantisation type, tokenizer)."""

    default_advice = "Choose a model of a supported family and type; `causerie info` names both."


class TokenizerError(CauserieError):
    """The vocabulary in the file is incomplete or contradicts itself."""

    default_advice = "Download the model again, or choose another file."


class TemplateError(CauserieError):
    """The chat template was refused, failed, or took too long."""

    default_advice = "Choose another model, or use `causerie complete` with a raw prompt."


class SettingsError(CauserieError, ValueError):
    """A setting is out of its range."""

    default_advice = "Change the setting named above."


class GrammarError(SettingsError):
    """A grammar or a JSON Schema that cannot be honoured."""

    default_advice = "Correct the grammar or the schema."


class ContextOverflowError(CauserieError):
    """The prompt does not fit the context, even after dropping every turn that may be dropped."""

    default_advice = "Shorten the message, or choose a larger context size."


class InvalidNumbersError(CauserieError):
    """The model produced logits that are no numbers; the text so far is kept."""

    default_advice = "Start the reply again; if it happens again, the model file is damaged."


class NoAllowedTokenError(CauserieError):
    """Bans, biases and what a grammar allows leave no token at all; the text so far is kept."""

    default_advice = "Allow more tokens: remove a ban, or loosen the grammar."


class KernelsError(CauserieError):
    """Compiled kernels are missing or do not suit this CPU."""

    default_advice = "Run `python3 dev.py kernels` to build them."


class BackendError(CauserieError):
    """A compute backend failed; the parent of the three kinds below."""

    default_advice = "Load the model again, or choose the cpu backend."


class OutOfMemoryError(BackendError, MemoryError):
    """The device (or this computer) has less free memory than is needed.

    lacking: how many bytes, 0 where that is not known.
    """

    default_advice = "Choose a smaller context size or a smaller model."

    def __init__(self, title: str, advice: str = "", lacking: int = 0) -> None:
        super().__init__(title, advice)
        self.lacking = lacking


class NoRoomBesideError(OutOfMemoryError):
    """There is too little memory beside the loaded model; without that one there may be enough."""

    default_advice = "Close the loaded model first, or choose a smaller model or context size."


class DeviceLostError(BackendError):
    """The device went away in the middle of the work."""


class UnsupportedByBackendError(BackendError):
    """The backend lacks an operation or a quantisation type that the model needs."""


class Cancelled(CauserieError):
    """Not a fault: the person asked to stop.  Raised out of loading; generation finishes instead."""
