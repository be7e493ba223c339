"""The settings of the sampler chain, each declared once: default, limits, and what it does.

The command line and the app's settings take descriptions, defaults and limits from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from engine.errors import SettingsError


def _setting(
    default: Any,
    description: str,
    minimum: float | None = None,
    maximum: float | None = None,
    *,
    above: float | None = None,
) -> Any:
    limits = {"minimum": minimum, "maximum": maximum, "above": above}
    return field(default=default, metadata={"description": description, **limits})


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """How the next token is chosen from the logits.  Raises `SettingsError` for values out of range.

    seed: None draws a fresh one.  logit_bias: token id to a number added to its logit.  banned_tokens: ids
    that are never chosen.  The others are told in their descriptions, the order in `engine.sampling.sampler`.
    """

    temperature: float = _setting(0.7, "How freely the next token is drawn; 0: always the likeliest.")
    top_k: int = _setting(40, "Draw only from the k likeliest tokens; 0: from all.")
    top_p: float = _setting(
        0.95, "Draw only from the likeliest tokens of this total probability; 1: all.", 0, 1
    )
    min_p: float = _setting(0.05, "Leave out tokens below this share of the likeliest; 0: none.", 0)
    typical_p: float = _setting(
        1.0,
        "Draw only from tokens as surprising as can be expected, of this total probability; 1: all.",
        0,
        1,
    )
    top_n_sigma: float = _setting(
        0.0, "Leave out logits this many standard deviations below the largest; 0: none.", 0
    )
    xtc_probability: float = _setting(
        0.0, "How often the likeliest tokens are left out for a less obvious one; 0: never.", 0, 1
    )
    xtc_threshold: float = _setting(
        0.1,
        "Tokens of this probability may be left out so; all but the least of them. Above 0.5: never.",
        0,
        1,
    )
    dynamic_temperature_range: float = _setting(
        0.0, "How far the temperature moves with how sure the model is; 0: not at all.", 0
    )
    dynamic_temperature_exponent: float = _setting(1.0, "Curve of the dynamic temperature; 1: straight.", 0)
    repetition_penalty: float = _setting(1.0, "How much recent tokens are held back; 1: not at all.", above=0)
    repetition_window: int = _setting(
        64, "How many of the last tokens the penalties look at; 0: none, -1: all.", -1
    )
    presence_penalty: float = _setting(0.0, "Taken from the logits of recent tokens once; 0: off.")
    frequency_penalty: float = _setting(
        0.0, "Taken from the logits of recent tokens for each time they occur; 0: off."
    )
    dry_multiplier: float = _setting(
        0.0, "How much a token is held back that would repeat a whole sequence (DRY); 0: not at all.", 0
    )
    dry_base: float = _setting(1.75, "Growth of the DRY penalty with every token of the sequence.", 1)
    dry_allowed_length: int = _setting(2, "Sequences up to this many tokens may be repeated freely.", 1)
    dry_window: int = _setting(-1, "How many of the last tokens DRY looks at; 0: none, -1: all.", -1)
    dry_sequence_breakers: tuple[str, ...] = _setting(
        ("\n", ":", '"', "*"), "A text across which DRY sees no repetition."
    )
    mirostat: bool = _setting(
        False, "Mirostat (version 2): hold the surprise steady, instead of all filters from top-k to XTC."
    )
    mirostat_tau: float = _setting(5.0, "The surprise that Mirostat holds, in bits.", 0)
    mirostat_eta: float = _setting(0.1, "How fast Mirostat corrects itself.", 0)
    seed: int | None = _setting(None, "The same seed gives the same reply; empty: a new one.", 0, 2**64 - 1)
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    banned_tokens: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for declared in fields(self):
            if declared.metadata:
                _check(declared.name, getattr(self, declared.name), declared.metadata)
        if any(math.isnan(bias) for bias in self.logit_bias.values()):
            raise SettingsError("a logit_bias is not a number.")


def _check(name: str, value: Any, limits: Mapping[str, Any]) -> None:
    if value is None or isinstance(value, (bool, tuple)):
        return
    if math.isnan(value):
        raise SettingsError(f"{name} is not a number.")
    # A temperature may be as low as one likes: all mean the same.
    if value == math.inf or (value == -math.inf and name != "temperature"):
        raise SettingsError(f"{name} must be finite.")
    minimum, maximum, above = limits["minimum"], limits["maximum"], limits["above"]
    if above is not None and value <= above:
        raise SettingsError(f"{name} must be above {above}, not {value}.")
    if minimum is not None and value < minimum:
        raise SettingsError(f"{name} must be at least {minimum}, not {value}.")
    if maximum is not None and value > maximum:
        raise SettingsError(f"{name} must be at most {maximum}, not {value}.")
