"""From a conversation to the prompt a model was trained on, by the chat template in its file.

Templates are Jinja2 programs written by strangers: they run in `engine.templates.sandbox`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from jinja2.exceptions import SecurityError, TemplateRuntimeError, TemplateSyntaxError

from engine.errors import TemplateError
from engine.reasoning import find_reasoning
from engine.requests import Message
from engine.templates.budget import Budget, deadline
from engine.templates.clock import format_time
from engine.templates.guard import ControlTextGuard, GuardedTexts
from engine.templates.messages import PlainMessage, plain_messages, shapes
from engine.templates.sandbox import TemplateSandbox
from engine.tokenizers.tokenizer import PromptSegment, Tokenizer
from engine.tokenizers.vocabulary import TokenKind

MAX_SOURCE = 50_000
"""Characters; the longest templates in use have about 20,000."""

_PROBE = "causerieprobe"
_LONGEST_REFUSAL = 500
# What templates compare roles with; any other role is somebody's words.
_CHANGES_OF_CASE = re.compile("upper|lower|title|case|capitalize")
"""Names of what makes other letters of a text, in the source of a template."""

_ROLES = frozenset({"system", "developer", "user", "assistant", "model", "tool", "function", "ipython"})


class TemplateRefusal(TemplateRuntimeError):
    """A template called raise_exception: it does not want this conversation."""


class ChatTemplate:
    """One compiled template.  reasoning: how its model marks thoughts, None where it has none.

    bos_text, eos_text: what templates know as bos_token and eos_token.
    control_texts: texts that nobody's words may turn into tokens.
    markup_texts: the same for what people and tools write, but left alone in the model's own earlier replies.
    now: the clock, for tests.
    Raises TemplateError for a template that is too long, wrong, or uses what is not allowed.
    """

    def __init__(
        self,
        source: str,
        *,
        bos_text: str = "",
        eos_text: str = "",
        control_texts: Iterable[str] = (),
        markup_texts: Iterable[str] = (),
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        if len(source) > MAX_SOURCE:
            raise TemplateError(
                f"The model's chat template is {len(source)} characters long; {MAX_SOURCE} are allowed."
            )
        self.source = source
        self.reasoning = find_reasoning(source)
        self._texts = {"bos_token": bos_text, "eos_token": eos_text}
        control_texts = tuple(control_texts)
        changes_case = _CHANGES_OF_CASE.search(source) is not None
        self._guarded_in_replies = GuardedTexts(control_texts, changes_case)
        self._guarded = GuardedTexts([*control_texts, *markup_texts], changes_case)
        self._now = now
        self._sandbox = TemplateSandbox()
        with _converted_errors():
            self._template = self._sandbox.from_string(source)
        end = deadline()
        self._content_as_parts = False
        if self._prints("user", end) is False:
            # Some templates only know content as a list of parts, and pass over a text in silence.
            self._content_as_parts = True
            self._content_as_parts = self._prints("user", end) is True
        self._system_is_printed = self._prints("system", end) is not False

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer, source: str | None = None) -> ChatTemplate | None:
        """A template with the control tokens of this vocabulary; None where there is no source.

        source: of `choose_template`; without it the file's default.
        """
        vocabulary = tokenizer.vocabulary
        if source is None:
            source = vocabulary.template
        if not source:
            return None

        def text(token: int | None) -> str:
            return "" if token is None else vocabulary.texts[token]

        user_defined = [vocabulary.texts[token] for token in vocabulary.ids_of_kind(TokenKind.USER_DEFINED)]
        return cls(
            source,
            bos_text=text(tokenizer.bos_id),
            eos_text=text(tokenizer.eos_id),
            control_texts=[vocabulary.texts[token] for token in tokenizer.control_ids],
            # White space and single letters are user-defined in some files: only marks of the template count.
            markup_texts=[mark for mark in user_defined if len(mark.strip()) > 2 and mark in source],
        )

    def render(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        variables: Mapping[str, Any] | None = None,
    ) -> list[PromptSegment]:
        """The prompt, for `tokenizer.encode_segments(segments, add_special=True)`.

        A template that refuses the conversation gets it in other shapes (see `templates.messages.shapes`).
        variables: further names for the template, such as tools.
        Raises TemplateError with the template's own words if it refuses them all, and if it fails, asks for
        what is forbidden, takes too long or needs too much memory.
        """
        end = deadline()
        first_refusal: _NoPrompt | None = None
        for shape in shapes(plain_messages(messages), system_is_printed=self._system_is_printed):
            try:
                return self._render(shape, add_generation_prompt, variables or {}, end)
            except _NoPrompt as refusal:
                first_refusal = first_refusal or refusal
        assert first_refusal is not None  # there is at least one shape
        raise TemplateError(first_refusal.title, first_refusal.advice) from first_refusal

    def ends_thinking(self, segments: Sequence[PromptSegment]) -> bool:
        """Whether a rendered prompt ends with the mark that opens the thoughts of the reply."""
        if self.reasoning is None or self.reasoning.has_channels or not segments or segments[-1].literal:
            return False
        return segments[-1].text.rstrip().endswith(self.reasoning.opening)

    def _render(
        self,
        messages: list[PlainMessage],
        add_generation_prompt: bool,
        variables: Mapping[str, Any],
        end: float,
    ) -> list[PromptSegment]:
        guard = ControlTextGuard(self.source, messages, variables)
        covered = [self._cover(guard, message) for message in messages]
        names: dict[str, Any] = {
            **guard.cover(variables, self._guarded),
            **self._texts,
            "messages": covered,
            "add_generation_prompt": add_generation_prompt,
            "raise_exception": _raise_exception,
            "strftime_now": lambda pattern: format_time(self._now(), pattern),
        }
        with _converted_errors():
            self._sandbox.budget = Budget(end, known=[*covered, covered])
            return guard.uncover(self._template.render(names))

    def _cover(self, guard: ControlTextGuard, message: PlainMessage) -> PlainMessage:
        # Templates look for marks such as </think> in what the model itself wrote before.
        texts = self._guarded_in_replies if message.get("role") == "assistant" else self._guarded
        covered: PlainMessage = guard.cover(message, texts)
        if message.get("role") in _ROLES:
            covered["role"] = message["role"]
        if self._content_as_parts:
            covered["content"] = [{"type": "text", "text": covered["content"]}]
        return covered

    def _prints(self, role: str, end: float) -> bool | None:
        """Whether the text of a message of this role comes out; None where the template takes no such probe.

        Raises TemplateError for what is forbidden or takes too long.
        """
        messages = [{"role": role, "content": _PROBE}]
        if role != "user":
            messages.append({"role": "user", "content": "Hi"})
        try:
            segments = self._render(messages, True, {}, end)
        except _NoPrompt:
            return None
        return _PROBE in "".join(segment.text for segment in segments).casefold()


class _NoPrompt(TemplateError):
    """The template refused this conversation or stumbled over it; another shape of it may do."""


@contextlib.contextmanager
def _converted_errors() -> Iterator[None]:
    """What goes wrong in a template, as TemplateError (or _NoPrompt)."""
    try:
        yield
    except TemplateRefusal as error:
        raise _NoPrompt(f"The model's chat template refuses this conversation: {error}") from error
    except SecurityError as error:
        raise TemplateError(f"The model's chat template was refused: {error}.") from error
    except TemplateSyntaxError as error:
        raise TemplateError(
            f"The model's chat template has an error in line {error.lineno}: {error}."
        ) from error
    except (RecursionError, MemoryError, OverflowError) as error:
        raise TemplateError("The model's chat template was refused: it asks for too much.") from error
    except Exception as error:  # a template can raise whatever its operations raise
        raise _NoPrompt(f"The model's chat template failed: {error}") from error


def _raise_exception(message: object = "") -> None:
    raise TemplateRefusal(str(message)[:_LONGEST_REFUSAL])
