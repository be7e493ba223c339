"""The main path of the engine: read the prompt, then sample, show and evaluate one token after the other.

`generate` and `chat` are Python generators of the records in `engine.requests`; the consumer sets the pace,
and may stop by should_stop(), which is asked before each token and, within a prompt, before each operation.

The last token of a reply is never evaluated: nobody needs the logits after it.  So a prompt that fills the
context still gets a reply of one token, and a reply has at most context_size - prompt + 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from time import perf_counter

from engine.backends.interface import ShouldStop
from engine.grammar.constraint import Constraint
from engine.prompt import fitting_prompt
from engine.reply import Reply
from engine.requests import (
    NO_TOKEN,
    ChatRequest,
    CompletionRequest,
    ContextTrimmed,
    Finished,
    FinishReason,
    GenerationRecord,
    TextPiece,
    Timings,
)
from engine.sampling.sampler import Sampler
from engine.sampling.settings import SamplingSettings
from engine.session import Session
from engine.tokenizers import Tokenizer


def chat(session: Session, request: ChatRequest, should_stop: ShouldStop) -> Iterator[GenerationRecord]:
    """The reply to a conversation; yields `ContextTrimmed` first where old turns had to be left out.

    Raises `TemplateError`, `ContextOverflowError`, and what `generate` raises.
    """
    # What a grammar asks for is an answer from its first token on.
    thinking = False if request.grammar else request.thinking
    prompt = fitting_prompt(session.model, request.messages, request.max_tokens, thinking)
    if prompt.dropped_messages:
        yield ContextTrimmed(prompt.dropped_messages)
    reasoning = None if request.grammar else prompt.reasoning
    reply = Reply(session.model.tokenizer, request.stop, reasoning, prompt.starts_thinking)
    completion = CompletionRequest(
        prompt.ids, request.sampling, request.max_tokens, request.stop, request.grammar
    )
    yield from _generate(session, completion, should_stop, reply)


def generate(
    session: Session, request: CompletionRequest, should_stop: ShouldStop
) -> Iterator[GenerationRecord]:
    """A continuation of prompt ids: PromptProgress+, TextPiece*, Finished.

    Raises `ContextOverflowError`, `SettingsError`, `InvalidNumbersError`, `NoAllowedTokenError`,
    `BackendError`.  When it fails in the middle of a reply, text still held back is yielded first, as a piece
    with the token `NO_TOKEN`.
    """
    reply = Reply(session.model.tokenizer, request.stop)
    yield from _generate(session, request, should_stop, reply)


def _generate(
    session: Session, request: CompletionRequest, should_stop: ShouldStop, reply: Reply
) -> Iterator[GenerationRecord]:
    tokenizer = session.model.tokenizer
    # Rows of an embedding beyond the vocabulary are padding; no text belongs to them.
    n_vocab = min(session.model.description.n_vocabulary, tokenizer.n_tokens)
    sampler = _sampler(request.sampling, tokenizer, n_vocab)
    constraint = Constraint(request.grammar, tokenizer, n_vocab) if request.grammar else None

    started = perf_counter()
    reused = 0
    for progress in session.prefill(request.prompt_ids, should_stop):
        reused = progress.reused
        yield progress
    n_read = len(session.tokens) - reused
    prompt_seconds = perf_counter() - started

    started = perf_counter()
    reason = _reason_to_end(session, request, reply, should_stop)
    try:
        while reason is None:
            logits = session.decode(reply.ids[-1]) if reply.ids else session.logits
            assert logits is not None
            choice = sampler.sample(logits[:n_vocab], session.tokens, constraint)
            if choice.token in tokenizer.eog_ids:
                reason = "stop"
                break
            shown = reply.push(choice.token)
            yield TextPiece(shown.answer, choice.token, choice.logprob, shown.thoughts)
            reason = _reason_to_end(session, request, reply, should_stop)
            if constraint:
                constraint.advance(choice.token)
                if constraint.is_complete:
                    reason = "stop"
    except Exception:
        # Keys and values that are no numbers would spoil every later reply.
        session.forget()
        held = reply.finish()
        if held.answer or held.thoughts:
            yield TextPiece(held.answer, NO_TOKEN, 0.0, held.thoughts)
        raise
    tail = reply.finish().answer
    yield Finished(
        reason="stop" if reply.stopped else reason,
        text=reply.text,
        ids=tuple(reply.ids),
        tail=tail,
        thoughts=reply.thoughts,
        timings=Timings(
            prompt_tokens=n_read,
            reused_tokens=reused,
            generated_tokens=len(reply.ids),
            prompt_seconds=prompt_seconds,
            generate_seconds=perf_counter() - started,
            context_used=len(session.tokens),
        ),
    )


def _reason_to_end(
    session: Session, request: CompletionRequest, reply: Reply, should_stop: ShouldStop
) -> FinishReason | None:
    """Why no further token follows, or None."""
    if session.logits is None:
        return "cancelled"
    if reply.stopped:
        return "stop"
    if request.max_tokens is not None and len(reply.ids) >= request.max_tokens:
        return "length"
    if reply.ids and session.is_full:
        return "context"
    return "cancelled" if should_stop() else None


def _sampler(settings: SamplingSettings, tokenizer: Tokenizer, n_vocab: int) -> Sampler:
    breakers = settings.dry_sequence_breakers

    @cache
    def breaks_sequence(token: int) -> bool:
        text = tokenizer.piece(token).decode("utf-8", "replace")
        return tokenizer.is_control(token) or any(breaker in text for breaker in breakers if breaker)

    return Sampler(settings, n_vocab, tokenizer.eog_ids | _line_breaks(tokenizer), breaks_sequence)


def _line_breaks(tokenizer: Tokenizer) -> frozenset[int]:
    ids = tokenizer.encode("\n", parse_special=False)
    return frozenset(token for token in ids if tokenizer.piece(token) == b"\n")
