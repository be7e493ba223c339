"""Mirostat's limit, step by step."""

import numpy as np
import pytest

from engine.sampling.mirostat import Mirostat


def test_the_limit_follows_the_surprise():
    mirostat = Mirostat(tau=3.0, eta=0.1)
    assert mirostat.limit == 6.0
    mirostat.observe(1 / 16)  # 4 bits, one more than wanted
    assert mirostat.limit == pytest.approx(5.9)
    mirostat.observe(1.0)  # no surprise, three bits less than wanted
    assert mirostat.limit == pytest.approx(6.2)


def test_what_surprises_more_than_the_limit_is_left_out():
    probabilities = np.array([0.5, 0.25, 0.125, 0.0625, 0.0625], np.float32)
    mirostat = Mirostat(tau=1.5, eta=0.1)
    assert mirostat.keep(probabilities).tolist() == [0, 1, 2]  # up to 3 bits
    mirostat.limit = 0.5
    assert mirostat.keep(probabilities).tolist() == [0]
    mirostat.limit = -1e6
    assert mirostat.keep(probabilities).tolist() == [0]
    mirostat.limit = 1e6
    assert mirostat.keep(probabilities).tolist() == [0, 1, 2, 3, 4]
