"""Grammars followed for tests: whether a text is described, and texts written at random."""

from __future__ import annotations

import random

from engine.grammar.automaton import DEAD, Automaton
from engine.grammar.expressions import Characters, Choice, Expression, Grammar, Reference, Repeat, Sequence
from engine.grammar.program import compile_grammar

LONGEST = 400
"""Bytes after which a random text is led to its end."""

ENDING_BYTES = b'"}]),:0123456789 '


def follow(grammar: Grammar) -> Automaton:
    return Automaton(compile_grammar(grammar))


def accepts(grammar: Grammar | Automaton, text: str | bytes) -> bool:
    automaton = grammar if isinstance(grammar, Automaton) else follow(grammar)
    raw = text.encode() if isinstance(text, str) else text
    return automaton.is_accepting(automaton.follow(automaton.start, raw))


def random_text(automaton: Automaton, chance: random.Random) -> bytes | None:
    """A whole text, each byte drawn from those that may come; None where it does not come to its end."""
    text, state = bytearray(), automaton.start
    while len(text) < LONGEST + 2000:
        if automaton.is_accepting(state) and (not automaton.can_go_on(state) or chance.random() < 0.3):
            return bytes(text)
        possible = [byte for byte in range(256) if automaton.step(state, byte) != DEAD]
        assert possible, f"{bytes(text)!r} leads nowhere"
        ending = [byte for byte in possible if byte in ENDING_BYTES] if len(text) > LONGEST else []
        text.append(chance.choice(ending or possible))
        state = automaton.step(state, text[-1])
    return None


def slowly_accepts(grammar: Grammar, text: str) -> bool:
    """By trying everything: each expression gives the places where a match may end."""

    def ends(expression: Expression, start: int, depth: int) -> set[int]:
        if depth > 200:
            return set()
        match expression:
            case Characters(ranges):
                fits = start < len(text) and any(a <= ord(text[start]) <= b for a, b in ranges)
                return {start + 1} if fits else set()
            case Reference(rule):
                return ends(grammar.rules[rule], start, depth + 1)
            case Choice(options):
                return set().union(*(ends(option, start, depth + 1) for option in options))
            case Sequence(items):
                places = {start}
                for item in items:
                    places = set().union(*(ends(item, place, depth + 1) for place in places))
                return places
            case Repeat(item, minimum, maximum):
                found, places, count = set(), {start}, 0
                while places and (maximum is None or count <= maximum) and count <= minimum + len(text) + 1:
                    if count >= minimum:
                        found |= places
                    places = set().union(*(ends(item, place, depth + 1) for place in places))
                    count += 1
                return found
        raise AssertionError(expression)

    return len(text) in ends(grammar.rules[grammar.root], 0, 0)
