"""The reply of a model as it grows: ids, the text of its answer that may be shown, and its thoughts."""

from __future__ import annotations

from collections.abc import Iterable

from engine.reasoning import ReasoningFormat, Split
from engine.stop_strings import StopStrings
from engine.tokenizers import StreamingDetokenizer, Tokenizer


class Reply:
    """One reply.

    stops: texts that end the answer; thoughts may hold them.
    reasoning: how this model marks its thoughts, None where it does not.
    starts_thinking: the prompt ends with the mark that opens them.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stops: Iterable[str],
        reasoning: ReasoningFormat | None = None,
        starts_thinking: bool = False,
    ) -> None:
        self.ids: list[int] = []
        self.stopped = False
        self._answer: list[str] = []
        self._thoughts: list[str] = []
        self._detokenizer = StreamingDetokenizer(tokenizer, continues_text=True)
        self._stops = StopStrings(stops)
        self._texts = tokenizer.vocabulary.texts
        self._controls = reasoning.controls if reasoning else frozenset()
        self._splitter = reasoning.splitter(starts_thinking) if reasoning else None

    @property
    def text(self) -> str:
        """The answer so far, without what is held back."""
        return "".join(self._answer)

    @property
    def thoughts(self) -> str:
        return "".join(self._thoughts).strip()

    def push(self, token: int) -> Split:
        """Takes a token; returns what may be shown now."""
        self.ids.append(token)
        text = self._detokenizer.push(token)
        if self._splitter is None:
            return self._show(Split(text))
        if not text and self._texts[token] in self._controls and not self._splitter.is_done:
            text = self._texts[token]
        return self._show(self._splitter.push(text))

    def finish(self) -> Split:
        """What was held back; a stop string may still be completed by it."""
        last = Split(self._detokenizer.finish())
        if self._splitter is not None:
            before, rest = self._splitter.push(last.answer), self._splitter.finish()
            last = Split(before.answer + rest.answer, before.thoughts + rest.thoughts)
        visible = self._show(last)
        held = self._stops.flush()
        self._answer.append(held)
        return Split(visible.answer + held, visible.thoughts)

    def _show(self, split: Split) -> Split:
        visible, stopped = self._stops.push(split.answer)
        self.stopped = self.stopped or stopped
        self._answer.append(visible)
        self._thoughts.append(split.thoughts)
        return Split(visible, split.thoughts)
