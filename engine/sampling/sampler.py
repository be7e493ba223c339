"""The sampler chain of one reply.

Its order: logit bias and bans; repetition, presence and frequency penalties; DRY; what a grammar allows;
top-n-sigma, top-k, typical, top-p, min-p, XTC; temperature (dynamic or not); draw.  Mirostat takes the place
of everything from top-n-sigma to XTC and comes after the temperature.  At temperature 0 the likeliest token
of what the penalties and the grammar leave is taken, and the filters play no part.

Filters see the logits before the temperature, so their meaning does not change with it, and each sees only
what the ones before it kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.errors import NoAllowedTokenError, SettingsError
from engine.sampling import filters, penalties
from engine.sampling.allowed import AllowedTokens, allowed_places
from engine.sampling.history import TokenHistory
from engine.sampling.mirostat import Mirostat
from engine.sampling.numbers import (
    GREEDY_BELOW,
    Indices,
    Logits,
    at_temperature,
    log_probability,
    possible_logits,
    softmax,
    sound_logits,
)
from engine.sampling.settings import SamplingSettings


@dataclass(frozen=True, slots=True)
class Choice:
    """token: the id chosen.  logprob: natural logarithm of its probability at temperature 1, unfiltered."""

    token: int
    logprob: float


class Sampler:
    """Chooses tokens for one reply.

    never_penalised: ids that penalties leave alone.  End-of-generation ids and line breaks stand in nearly
    every window; penalising them lets a reply run on without an end.
    breaks_sequence: whether DRY sees no repetition across a token.
    Raises `SettingsError` where a bias or a ban names a token outside the vocabulary.
    """

    def __init__(
        self,
        settings: SamplingSettings,
        n_vocab: int,
        never_penalised: Collection[int] = (),
        breaks_sequence: Callable[[int], bool] = lambda token: False,
    ) -> None:
        for name, tokens in (("logit_bias", settings.logit_bias), ("banned_tokens", settings.banned_tokens)):
            for token in tokens:
                if not 0 <= token < n_vocab:
                    raise SettingsError(f"{name} names token {token}, but the model has {n_vocab} tokens.")
        self.settings = settings
        self.n_vocab = n_vocab
        self._never_penalised = frozenset(never_penalised)
        self._breaks_sequence = breaks_sequence
        self._banned = np.fromiter(settings.banned_tokens, np.intp)
        self._filters = self._active_filters()
        self._history = TokenHistory()
        self._mirostat = Mirostat(settings.mirostat_tau, settings.mirostat_eta)
        self._random = np.random.Generator(np.random.PCG64(settings.seed))

    def _active_filters(self) -> list[Callable[[Logits], Indices]]:
        settings = self.settings
        chain: list[tuple[bool, Callable[[Logits], Indices]]] = [
            (settings.top_n_sigma > 0, partial(filters.keep_top_n_sigma, n_sigma=settings.top_n_sigma)),
            (settings.top_k > 0, partial(filters.keep_top_k, k=settings.top_k)),
            (settings.typical_p < 1, partial(filters.keep_typical, p=settings.typical_p)),
            (settings.top_p < 1, partial(filters.keep_top_p, p=settings.top_p)),
            (settings.min_p > 0, partial(filters.keep_min_p, share=settings.min_p)),
            (settings.xtc_probability > 0, self._keep_xtc),
        ]
        return [keep for is_on, keep in chain if is_on]

    def sample(
        self,
        logits: Logits,
        history: Sequence[int],
        allowed: AllowedTokens | NDArray[np.bool_] | None = None,
    ) -> Choice:
        """The next token after history (prompt and reply so far), from float32[vocabulary] logits.

        allowed: bool[vocabulary], or what tells for each token; false: never chosen.  From one call to the
        next a history only grows.  The logits are left as they are.  Raises `InvalidNumbersError` where the
        model gives no number at all, and `NoAllowedTokenError` where bans and allowed leave no token.
        """
        raw = sound_logits(logits)
        adjusted = self._adjusted(raw, history)
        places = None if allowed is None else allowed_places(adjusted, allowed, self._n_looked_at())
        if places is not None:
            if not len(places):
                raise NoAllowedTokenError("No token may follow: everything is ruled out.")
            adjusted = adjusted[places]
        place = self._place_in(possible_logits(adjusted))
        token = place if places is None else int(places[place])
        return Choice(token, log_probability(raw, token))

    def _n_looked_at(self) -> int:
        """How many of the likeliest tokens any choice is made from; 0: of all."""
        settings = self.settings
        if settings.temperature <= GREEDY_BELOW:
            return 1
        return 0 if settings.mirostat or settings.top_n_sigma > 0 else max(0, settings.top_k)

    def _place_in(self, logits: Logits) -> int:
        if self.settings.temperature <= GREEDY_BELOW:
            return int(np.argmax(logits))
        return self._draw_steadily(logits) if self.settings.mirostat else self._draw(logits)

    def _adjusted(self, logits: Logits, history: Sequence[int]) -> Logits:
        """Logits after biases, bans and penalties."""
        settings = self.settings
        penalises = settings.repetition_window != 0 and (
            settings.repetition_penalty != 1 or settings.presence_penalty or settings.frequency_penalty
        )
        repels = settings.dry_multiplier > 0 and settings.dry_window != 0
        if not (settings.logit_bias or settings.banned_tokens or penalises or repels):
            return logits
        adjusted = logits.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            penalties.add_logit_bias(adjusted, settings.logit_bias)
            adjusted[self._banned] = -np.inf
            if penalises:
                penalties.penalise_repetition(
                    adjusted,
                    self._recent(history, settings.repetition_window),
                    repetition=settings.repetition_penalty,
                    presence=settings.presence_penalty,
                    frequency=settings.frequency_penalty,
                    spared=self._never_penalised,
                )
            if repels:
                penalties.penalise_repeated_sequences(
                    adjusted,
                    self._recent(history, settings.dry_window),
                    multiplier=settings.dry_multiplier,
                    base=settings.dry_base,
                    allowed_length=settings.dry_allowed_length,
                    breaks=self._breaks_sequence,
                    spared=self._never_penalised,
                )
        # Infinities may have met: what is no number comes last.
        return np.where(np.isnan(adjusted), np.float32(-np.inf), adjusted)

    def _recent(self, history: Sequence[int], window: int) -> NDArray[np.int64]:
        """The last tokens of a window; -1: all."""
        tokens = self._history.follow(history)
        return tokens if window < 0 else tokens[-window:]

    def _filtered(self, logits: Logits) -> Indices | None:
        """Indices of the tokens that all filters keep; None stands for all."""
        kept: Indices | None = None
        for keep in self._filters:
            chosen = keep(logits if kept is None else logits[kept])
            kept = chosen if kept is None else kept[chosen]
        return kept

    def _keep_xtc(self, logits: Logits) -> Indices:
        if self._random.random() < self.settings.xtc_probability:
            return filters.keep_xtc(logits, self.settings.xtc_threshold)
        return np.arange(len(logits))

    def _draw(self, logits: Logits) -> int:
        kept = self._filtered(logits)
        possible = logits if kept is None else logits[kept]
        place = self._place(at_temperature(possible, self._temperature(possible)))
        return place if kept is None else int(kept[place])

    def _draw_steadily(self, logits: Logits) -> int:
        probabilities = at_temperature(logits, self._temperature(logits))
        kept = self._mirostat.keep(probabilities)
        likely = probabilities[kept]
        place = self._place(likely)
        self._mirostat.observe(float(likely[place]) / float(likely.sum(dtype=np.float64)))
        return int(kept[place])

    def _temperature(self, logits: Logits) -> float:
        settings = self.settings
        if settings.dynamic_temperature_range <= 0:
            return settings.temperature
        return dynamic_temperature(
            logits,
            settings.temperature,
            settings.dynamic_temperature_range,
            settings.dynamic_temperature_exponent,
        )

    def _place(self, probabilities: NDArray[np.float32]) -> int:
        """An index drawn by its probability; they need not sum to 1."""
        sums = np.cumsum(probabilities, dtype=np.float64)
        # side="right" passes over tokens of probability 0.
        place = int(np.searchsorted(sums, self._random.random() * sums[-1], side="right"))
        return min(place, len(probabilities) - 1)


def dynamic_temperature(logits: Logits, temperature: float, width: float, exponent: float) -> float:
    """From temperature - width (at least 0) where one token is certain, to + width where all are alike.

    Between them it follows the entropy, as a share of the largest there could be, to the power of exponent.
    Source: the proposal of its author, https://github.com/ggml-org/llama.cpp/pull/4972
    """
    if len(logits) < 2:
        return temperature
    low, high = max(0.0, temperature - width), temperature + width
    share = filters.entropy(softmax(logits)) / np.log(len(logits))
    return float(low + (high - low) * min(max(share, 0.0), 1.0) ** exponent)
