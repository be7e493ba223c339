"""From a conversation to prompt ids that fit the context.

Where the whole conversation does not fit, whole oldest turns are left out, each a question with all that
answers it; the system prompt in front and the last turn always stay.

What is left out grows in steps of a quarter of the context.  Were it always as little as possible, every
message of a long chat would leave out another turn, and nearly all of the KV cache would be read anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import ContextOverflowError, TemplateError
from engine.reasoning import ReasoningFormat
from engine.requests import Message

if TYPE_CHECKING:
    from engine.model import LoadedModel

SYSTEM_ROLES = frozenset({"system", "developer"})
SHARES = 4
"""The context in parts: one is the most that is kept free for the reply, and one is the step of trimming."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """ids to read, and how many messages were left out.

    reasoning: how the reply will mark thoughts, None where it has none.
    starts_thinking: whether the prompt ends within them.
    """

    ids: tuple[int, ...]
    dropped_messages: int
    reasoning: ReasoningFormat | None
    starts_thinking: bool


def fitting_prompt(
    model: LoadedModel, messages: Sequence[Message], max_tokens: int | None, thinking: bool | None = None
) -> Prompt:
    """Renders as much of the conversation as leaves room for the reply.

    The room is max_tokens, at most a quarter of the context.  A last turn alone may take all of the context.
    Raises `ContextOverflowError` where it is longer still, and `TemplateError`.
    """
    room = model.context_size // SHARES
    if max_tokens is not None:
        room = min(room, max_tokens)
    n_system = _leading_system_messages(messages)
    system, turns = messages[:n_system], _turns(messages[n_system:])

    def prompt_without(n_turns: int) -> Prompt:
        kept = [message for turn in turns[n_turns:] for message in turn]
        dropped = sum(len(turn) for turn in turns[:n_turns])
        return _prompt(model, [*system, *kept], dropped, thinking)

    prompt = prompt_without(0)
    limit = model.context_size - room
    if len(prompt.ids) <= limit or len(turns) < 2:
        return _checked(prompt, model.context_size)
    step = max(1, model.context_size // SHARES)
    n_steps = -(-(len(prompt.ids) - limit) // step)
    goal = len(prompt.ids) - n_steps * step
    # A prompt shrinks with every turn left out, so the fewest are found by halving: each try is a rendering.
    too_few, enough = 0, len(turns) - 1
    best = prompt_without(enough)
    if len(best.ids) > goal:
        goal = limit
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        prompt = prompt_without(middle)
        if len(prompt.ids) <= goal:
            enough, best = middle, prompt
        else:
            too_few = middle
    return _checked(best, model.context_size)


def _prompt(model: LoadedModel, messages: Sequence[Message], dropped: int, thinking: bool | None) -> Prompt:
    template = model.template
    if template is None:
        raise TemplateError("This model has no chat template.")
    # Templates in use know the switch by one of these names.
    switch = {} if thinking is None else {"enable_thinking": thinking, "thinking": thinking}
    segments = template.render(messages, variables=switch)
    # A whole text would also get the EOS that some files ask for; a reply has to follow this one.
    ids = model.tokenizer.with_bos(model.tokenizer.encode_segments(segments))
    return Prompt(tuple(ids), dropped, template.reasoning, template.ends_thinking(segments))


def _checked(prompt: Prompt, context_size: int) -> Prompt:
    if len(prompt.ids) > context_size:
        raise ContextOverflowError(
            f"The message needs {len(prompt.ids)} tokens with the system prompt, "
            f"and the context holds {context_size}."
        )
    return prompt


def _leading_system_messages(messages: Sequence[Message]) -> int:
    count = 0
    while count < len(messages) and messages[count].role in SYSTEM_ROLES:
        count += 1
    return count


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Each begins with a message of the user, but the first perhaps with something else."""
    turns: list[list[Message]] = []
    for message in messages:
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns
