"""Continues a raw prompt, without a chat template."""

from __future__ import annotations

import argparse
import contextlib

from app.commands.common import (
    add_json,
    add_loading,
    add_model,
    loaded_model,
    print_json,
)
from app.commands.output_rules import add_output_rules, grammar_of, tell_cut_off
from app.commands.prompt import add_prompt, prompt_ids, prompt_text
from app.commands.reply import StopOnCtrlC, show_reply, timings_json
from app.commands.sampling_options import add_sampling, sampling_settings
from engine.generation import generate
from engine.requests import CompletionRequest
from engine.session import Session

DEFAULT_TOKENS = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_prompt(parser)
    add_sampling(parser)
    add_output_rules(parser)
    add_loading(parser)
    add_json(parser)
    parser.set_defaults(max_tokens=DEFAULT_TOKENS)


def run(options: argparse.Namespace) -> int:
    sampling = sampling_settings(options)
    grammar = grammar_of(options)
    text = prompt_text(options)
    with loaded_model(options) as model, contextlib.closing(Session(model)) as session:
        ids = prompt_ids(model.tokenizer, text)
        request = CompletionRequest(tuple(ids), sampling, options.max_tokens, tuple(options.stop), grammar)
        with StopOnCtrlC() as ctrl_c:
            finished = show_reply(generate(session, request, ctrl_c.should_stop), not options.json)
    tell_cut_off(finished, grammar)
    if options.json:
        print_json(
            {
                "prompt_ids": ids,
                "ids": list(finished.ids),
                "text": finished.text,
                "finish_reason": finished.reason,
                "timings": timings_json(finished.timings),
            }
        )
    return 130 if finished.reason == "cancelled" else 0
