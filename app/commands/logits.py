"""The likeliest next tokens of a prompt, with their log-probabilities."""

from __future__ import annotations

import argparse
import contextlib

import numpy as np
from numpy.typing import NDArray

from app.commands.common import add_json, add_loading, add_model, loaded_model, print_json
from app.commands.prompt import add_prompt, prompt_ids, prompt_text
from app.terminal import json_text
from engine.errors import Cancelled, InvalidNumbersError, SettingsError
from engine.session import Session
from engine.tokenizers import Tokenizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_prompt(parser)
    parser.add_argument("--top", type=int, default=10, metavar="K", help="how many (default %(default)s)")
    add_loading(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    if options.top < 1:
        raise SettingsError(f"--top must be at least 1, not {options.top}.")
    text = prompt_text(options)
    with loaded_model(options) as model, contextlib.closing(Session(model)) as session:
        ids = prompt_ids(model.tokenizer, text)
        for _ in session.prefill(ids, lambda: False):
            pass
        if session.logits is None:
            raise Cancelled("Reading the prompt was stopped.")
        logprobs = log_probabilities(session.logits)
        top = [
            {"id": token, "text": token_text(model.tokenizer, token), "logprob": float(logprobs[token])}
            for token in likeliest(logprobs, options.top)
        ]
    if options.json:
        print_json({"top": top})
        return 0
    for row in top:
        print(f"{row['logprob']:>10.4f}  {row['id']:>8}  {json_text(row['text'])}")
    return 0


def token_text(tokenizer: Tokenizer, token: int) -> str:
    """The text of a token; "" for a row that only fills up the output matrix, beyond the vocabulary."""
    return tokenizer.token_text(token) if token < tokenizer.n_tokens else ""


def log_probabilities(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """float64[vocabulary] natural logarithms of the softmax of float32[vocabulary] logits.

    Raises `InvalidNumbersError` where they are no numbers.
    """
    shifted = logits.astype(np.float64) - logits.max()
    if not np.isfinite(shifted).all():
        raise InvalidNumbersError("The model gave logits that are no finite numbers.")
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return result


def likeliest(logprobs: NDArray[np.float64], count: int) -> list[int]:
    """Ids of the largest, largest first, the lower id first where two are equal."""
    return [int(token) for token in np.argsort(-logprobs, kind="stable")[:count]]
