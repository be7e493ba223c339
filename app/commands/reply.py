"""A reply on its way to the terminal: text as it comes, notes and progress on stderr, Ctrl-C."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType

from app.terminal import ProgressLine, for_stdout, tell
from engine.requests import ContextTrimmed, Finished, GenerationRecord, PromptProgress, TextPiece, Timings


class StopOnCtrlC:
    """Within the block the first Ctrl-C sets ``asked``, and the second raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.asked = False

    def should_stop(self) -> bool:
        return self.asked

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __enter__(self) -> StopOnCtrlC:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)


def show_reply(records: Iterator[GenerationRecord], to_stdout: bool) -> Finished:
    """Follows the records to the end, writing the answer to stdout as it comes where wanted.

    Of thoughts only their number of tokens is shown.
    """
    finished: Finished | None = None
    n_thoughts = 0
    with ProgressLine() as line:
        for record in records:
            match record:
                case ContextTrimmed(dropped):
                    tell(f"note: the {dropped} oldest messages no longer fit the context and are left out")
                case PromptProgress(done, total, _):
                    line.show(f"reading the prompt: {done} of {total} tokens")
                case TextPiece(text="", thoughts=thoughts) if thoughts:
                    n_thoughts += 1
                    line.show(f"thinking: {n_thoughts} tokens")
                case TextPiece(text=text):
                    line.clear()
                    _write(text, to_stdout)
                case Finished():
                    finished = record
                    line.clear()
                    _write(record.tail, to_stdout)
    assert finished is not None, "generation always ends with Finished"
    if to_stdout:
        print(flush=True)
    if finished.thoughts and not finished.text and finished.reason in ("length", "context"):
        tell("note: the model was still thinking when the reply ended")
    if finished.reason == "context":
        tell("note: the context is full, so the reply ends here; a larger one can be chosen with --context")
    return finished


def _write(text: str, to_stdout: bool) -> None:
    if text and to_stdout:
        sys.stdout.write(for_stdout(text))
        sys.stdout.flush()


def timings_json(timings: Timings) -> dict[str, float]:
    """Counts in tokens, times in seconds."""
    return {
        "prompt_tokens": timings.prompt_tokens,
        "reused_tokens": timings.reused_tokens,
        "generated_tokens": timings.generated_tokens,
        "prompt_seconds": timings.prompt_seconds,
        "generate_seconds": timings.generate_seconds,
        "read_tokens_per_second": timings.read_tokens_per_second,
        "write_tokens_per_second": timings.write_tokens_per_second,
        "context_used": timings.context_used,
    }
