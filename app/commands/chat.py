"""Talks with a model through its chat template: one reply with -m, else a conversation."""

from __future__ import annotations

import argparse
import contextlib
import sys

from app.commands.common import (
    add_json,
    add_loading,
    add_model,
    loaded_model,
    print_json,
)
from app.commands.conversation import Conversation
from app.commands.output_rules import add_output_rules, grammar_of, tell_cut_off
from app.commands.reply import StopOnCtrlC, show_reply, timings_json
from app.commands.sampling_options import add_sampling, sampling_settings
from app.commands.template_options import add_template, require_template
from engine.errors import SettingsError
from engine.generation import chat
from engine.requests import Message
from engine.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("-m", "--message", metavar="TEXT", help="print the reply to TEXT alone, and leave")
    parser.add_argument(
        "-s", "--system", metavar="TEXT", help="what the model is told before the conversation"
    )
    add_template(parser)
    add_sampling(parser)
    add_output_rules(parser)
    add_loading(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    if options.json and options.message is None:
        raise SettingsError("--json needs a message.", "Give it with -m TEXT.")
    sampling = sampling_settings(options)
    grammar = grammar_of(options)
    with loaded_model(options) as model:
        require_template(model, may_ask=options.message is None and sys.stdin.isatty())
        with contextlib.closing(Session(model)) as session:
            conversation = Conversation(
                session,
                sampling,
                options.system,
                options.max_tokens,
                tuple(options.stop),
                grammar,
                options.thinking,
            )
            if options.message is None:
                return conversation.hold()
            return _reply_once(conversation, options)


def _reply_once(conversation: Conversation, options: argparse.Namespace) -> int:
    messages = (*conversation.messages, Message("user", options.message))
    request = conversation.request(messages)
    with StopOnCtrlC() as ctrl_c:
        finished = show_reply(chat(conversation.session, request, ctrl_c.should_stop), not options.json)
    tell_cut_off(finished, request.grammar)
    if options.json:
        print_json(
            {
                "text": finished.text,
                "thoughts": finished.thoughts,
                "ids": list(finished.ids),
                "finish_reason": finished.reason,
                "timings": timings_json(finished.timings),
            }
        )
    return 130 if finished.reason == "cancelled" else 0
