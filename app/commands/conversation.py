"""A conversation in the terminal: lines in, replies out, commands that begin with a slash."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from app import paths
from app.commands.output_rules import tell_cut_off
from app.commands.reply import StopOnCtrlC, show_reply
from app.terminal import tell, tell_error
from engine.errors import CauserieError
from engine.generation import chat
from engine.grammar.expressions import Grammar
from engine.requests import ChatRequest, Finished, Message, SamplingSettings
from engine.session import Session

PROMPT = "> "
HISTORY_LINES = 1000
EXIT_CTRL_C = 130

HELP = """\
/help           this list
/new            forget the conversation and begin another
/system TEXT    what the model is told before the conversation; without TEXT: nothing
/again          another reply to your last message
/stats          speed of the last reply, and how full the context is
/quit           leave (so does Ctrl-D)
A line that ends with \\ goes on in the next one.  Ctrl-C stops a reply; twice leaves."""


class Conversation:
    """Holds the messages; the session keeps what the model has read of them."""

    def __init__(
        self,
        session: Session,
        sampling: SamplingSettings,
        system: str | None,
        max_tokens: int | None,
        stop: tuple[str, ...],
        grammar: Grammar | None = None,
        thinking: bool | None = None,
    ) -> None:
        self.session = session
        self.sampling = sampling
        self.messages: list[Message] = [Message("system", system)] if system else []
        self._max_tokens = max_tokens
        self._stop = stop
        self._grammar = grammar
        self._thinking = thinking
        self._last: Finished | None = None
        self._commands: dict[str, Callable[[str], None]] = {
            "/help": lambda _: print(HELP),
            "/new": self._new,
            "/system": self._system,
            "/again": self._again,
            "/stats": self._stats,
        }

    def request(self, messages: tuple[Message, ...]) -> ChatRequest:
        """Asks for a reply to messages, as everything in this conversation is asked for."""
        return ChatRequest(
            messages, self.sampling, self._max_tokens, self._stop, self._grammar, self._thinking
        )

    def hold(self) -> int:
        """Until the person leaves; returns the exit status."""
        interactive = sys.stdin.isatty()
        if interactive:
            print(f"Chatting with {self.session.model.description.name}. /help lists what can be typed.")
        with _line_history(interactive):
            interrupted = False
            while True:
                try:
                    line = _read_line(interactive)
                except EOFError:
                    return 0
                except KeyboardInterrupt:
                    print()
                    if interrupted or not interactive:
                        return EXIT_CTRL_C
                    interrupted = True
                    tell("Ctrl-C again leaves.")
                    continue
                interrupted = False
                if line.strip() in ("/quit", "/exit"):
                    return 0
                self._answer(line)

    def _answer(self, line: str) -> None:
        name, _, rest = line.strip().partition(" ")
        if name in self._commands:
            self._commands[name](rest.strip())
        elif name.startswith("/") and name[1:].isalpha() and not rest:
            tell(f"{name} is no command here; /help lists them.")
        elif name:
            self._reply_to(line)

    def _reply_to(self, text: str) -> None:
        """A failed reply leaves the conversation as it was; a stopped one is kept as far as it came."""
        self.messages.append(Message("user", text))
        request = self.request(tuple(self.messages))
        try:
            with StopOnCtrlC() as ctrl_c:
                self._last = show_reply(chat(self.session, request, ctrl_c.should_stop), to_stdout=True)
        except CauserieError as error:
            self.messages.pop()
            tell_error(error)
            return
        tell_cut_off(self._last, self._grammar)
        self.messages.append(Message("assistant", self._last.text))

    def _new(self, _: str) -> None:
        self.messages = [message for message in self.messages if message.role == "system"]
        self._last = None
        tell("A new conversation.")

    def _system(self, text: str) -> None:
        others = [message for message in self.messages if message.role != "system"]
        self.messages = [Message("system", text), *others] if text else others

    def _again(self, _: str) -> None:
        if not self.messages or self.messages[-1].role != "assistant":
            tell("There is no reply yet.")
            return
        reply = self.messages.pop()
        question = self.messages.pop()
        self._reply_to(question.content)
        if not self.messages or self.messages[-1].role != "assistant":
            self.messages += [question, reply]

    def _stats(self, _: str) -> None:
        if self._last is None:
            tell("There is no reply yet.")
            return
        timings = self._last.timings
        print(
            f"read {timings.prompt_tokens} tokens at {timings.read_tokens_per_second:.1f}/s "
            f"({timings.reused_tokens} were known), wrote {timings.generated_tokens} "
            f"at {timings.write_tokens_per_second:.1f}/s; "
            f"context {timings.context_used} of {self.session.context_size} tokens"
        )


def _read_line(interactive: bool) -> str:
    """One message.  Raises EOFError at the end of the input."""
    lines = [_read_one(PROMPT, interactive)]
    while lines[-1].endswith("\\"):
        lines[-1] = lines[-1][:-1]
        with contextlib.suppress(EOFError):
            lines.append(_read_one("  ", interactive))
    return "\n".join(lines)


def _read_one(prompt: str, interactive: bool) -> str:
    if interactive:
        return input(prompt)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


@contextlib.contextmanager
def _line_history(interactive: bool) -> Iterator[None]:
    """Arrow keys bring back earlier lines, also those of the last time."""
    try:
        import readline
    except ImportError:  # Windows has its own
        interactive = False
    if not interactive:
        yield
        return
    with contextlib.suppress(OSError):
        readline.read_history_file(paths.history_file())
    readline.set_history_length(HISTORY_LINES)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            paths.history_file().parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(paths.history_file())
