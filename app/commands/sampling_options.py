"""Options of the sampler chain, from the declarations in `engine.sampling.settings`, and when to stop."""

from __future__ import annotations

import argparse
import dataclasses

from engine.errors import SettingsError
from engine.requests import SamplingSettings

OPTIONS = {
    "--temp": "temperature",
    "--top-k": "top_k",
    "--top-p": "top_p",
    "--min-p": "min_p",
    "--typical-p": "typical_p",
    "--top-n-sigma": "top_n_sigma",
    "--xtc-probability": "xtc_probability",
    "--xtc-threshold": "xtc_threshold",
    "--dynamic-temp-range": "dynamic_temperature_range",
    "--dynamic-temp-exponent": "dynamic_temperature_exponent",
    "--repeat-penalty": "repetition_penalty",
    "--repeat-window": "repetition_window",
    "--presence-penalty": "presence_penalty",
    "--frequency-penalty": "frequency_penalty",
    "--dry-multiplier": "dry_multiplier",
    "--dry-base": "dry_base",
    "--dry-allowed-length": "dry_allowed_length",
    "--dry-window": "dry_window",
    "--mirostat-tau": "mirostat_tau",
    "--mirostat-eta": "mirostat_eta",
}
"""Option -> setting, for all that take one number."""

_FIELDS = {field.name: field for field in dataclasses.fields(SamplingSettings)}


def add_sampling(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sampling", "the order of the filters is told in docs/commands.md")
    add = group.add_argument
    add("-n", "--max-tokens", type=int, metavar="N", help="longest reply in tokens")
    for option, name in OPTIONS.items():
        default = _FIELDS[name].default
        add(
            option,
            dest=name,
            type=type(default),
            default=default,
            metavar="N" if isinstance(default, int) else "X",
            help=f"{_help(name)} (default {default})",
        )
    add("--mirostat", action="store_true", help=_help("mirostat"))
    add(
        "--dry-breaker",
        action="append",
        default=[],
        dest="dry_breakers",
        metavar="TEXT",
        help=f"{_help('dry_sequence_breakers')}; may be given again, instead of the usual ones",
    )
    add(
        "--logit-bias",
        action="append",
        default=[],
        metavar="ID=X",
        help="X is added to the logit of this token; may be given again",
    )
    add(
        "--ban",
        action="append",
        type=int,
        default=[],
        metavar="ID",
        help="this token is never chosen; may be given again (`causerie tokenize` tells ids)",
    )
    add("--seed", type=int, metavar="S", help="the same seed gives the same text")
    add("--stop", action="append", default=[], metavar="TEXT", help="end at this text; may be given again")


def sampling_settings(options: argparse.Namespace) -> SamplingSettings:
    """Raises `SettingsError`."""
    numbers = {name: getattr(options, name) for name in OPTIONS.values()}
    return SamplingSettings(
        **numbers,
        dry_sequence_breakers=tuple(options.dry_breakers) or SamplingSettings().dry_sequence_breakers,
        mirostat=options.mirostat,
        logit_bias=dict(map(_bias, options.logit_bias)),
        banned_tokens=frozenset(options.ban),
        seed=options.seed,
    )


def _bias(text: str) -> tuple[int, float]:
    token, _, value = text.partition("=")
    try:
        return int(token), float(value)
    except ValueError:
        raise SettingsError(f"{text!r} is no bias.", "Write it as ID=X, such as 198=-5.") from None


def _help(name: str) -> str:
    sentence = str(_FIELDS[name].metadata["description"]).removesuffix(".")
    # argparse puts values into the percent signs of a help text.
    return (sentence[0].lower() + sentence[1:]).replace("%", "%%")
