"""Stop strings across the borders of pieces (S-07)."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.stop_strings import StopStrings


def feed(stops, pieces):
    """The text shown for these pieces, and whether a stop string ended it."""
    watcher = StopStrings(stops)
    shown = ""
    for piece in pieces:
        visible, stopped = watcher.push(piece)
        shown += visible
        if stopped:
            return shown, True
    return shown + watcher.flush(), False


@pytest.mark.parametrize(
    ("stops", "pieces", "shown", "stopped"),
    [
        (["DEFGHIJ"], ["DEF", "G", "HI", "J"], "", True),
        (["own fox"], ["The quick br", "own", " fox"], "The quick br", True),
        (["ab"], ["a", "a", "b"], "a", True),
        (["User:"], ["Us", "e the"], "Use the", False),
        (["as it"], ["ple", "as"], "pleas", False),
        (["STOP"], ["xSTOPy"], "x", True),
        (["é"], ["caf", "é", "!"], "caf", True),
        (["ab", "abc"], ["x", "a", "bc"], "x", True),
        (["abc", "ab"], ["xab"], "x", True),
        (["bc", "abc"], ["xabc"], "x", True),
        (["abcdef", "bcd"], ["abcdef"], "a", True),
        ([""], ["a", "", "b"], "ab", False),
        (["", "b"], ["ab"], "a", True),
        ([], ["a", "b"], "ab", False),
        (["aaab"], ["aa", "aa", "aa", "b"], "aaa", True),
    ],
)
def test_table(stops, pieces, shown, stopped):
    assert feed(stops, pieces) == (shown, stopped)


def test_nothing_of_a_possible_stop_string_is_shown_early():
    watcher = StopStrings(["</end>"])
    assert watcher.push("text</e") == ("text", False)
    assert watcher.push("nd") == ("", False)
    assert watcher.push("!") == ("</end!", False)


def test_pieces_after_the_stop_are_swallowed():
    watcher = StopStrings(["x"])
    assert watcher.push("axb") == ("a", True)
    assert watcher.push("more") == ("", True)
    assert watcher.flush() == ""


def cut(text, places):
    borders = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[start:stop] for start, stop in itertools.pairwise(borders)]


short_stops = st.lists(st.text("abé", min_size=0, max_size=4), max_size=4)


@given(short_stops, st.text("abcé", max_size=30), st.lists(st.integers(0, 30), max_size=12))
def test_the_outcome_does_not_depend_on_the_pieces(stops, text, places):
    assert feed(stops, cut(text, places)) == feed(stops, list(text))


@given(short_stops, st.text("abcé", max_size=30))
def test_against_the_plain_definition(stops, text):
    wanted = (text, False)
    for end in range(1, len(text) + 1):
        met = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if met:
            wanted = (text[: end - max(map(len, met))], True)
            break
    assert feed(stops, [text]) == wanted
