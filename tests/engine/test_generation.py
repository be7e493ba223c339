"""Generation on the fake backend: order of records, ends, limits, stop strings, cancelling, errors."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.backends.fake import FakeBehaviour
from engine.errors import ContextOverflowError, InvalidNumbersError, TemplateError
from engine.generation import chat, generate
from engine.requests import (
    NO_TOKEN,
    ChatRequest,
    CompletionRequest,
    ContextTrimmed,
    Finished,
    Message,
    PromptProgress,
    SamplingSettings,
    TextPiece,
)
from engine.session import Session
from engine.tokenizers import load_tokenizer
from tests.helpers.fake_chat import GREEDY, chat_model, tiny_tokenizer
from tests.helpers.vocabularies import sentence_piece_metadata


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny_tokenizer(tmp_path_factory.mktemp("vocabulary"))


def never():
    return False


def complete(session, prompt=(50, 51, 52), should_stop=never, **request):
    request = CompletionRequest(tuple(prompt), **{"sampling": GREEDY, **request})
    return list(generate(session, request, should_stop))


def ask(session, *contents, should_stop=never, **request):
    """Contents in turn of user and assistant; with a leading system prompt where marked by a tuple."""
    messages = []
    if contents and isinstance(contents[0], tuple):
        messages.append(Message("system", contents[0][0]))
        contents = contents[1:]
    roles = itertools.cycle(["user", "assistant"])
    messages += [Message(role, content) for role, content in zip(roles, contents, strict=False)]
    request = ChatRequest(tuple(messages), **{"sampling": GREEDY, **request})
    return list(chat(session, request, should_stop))


def pieces(records):
    return [record for record in records if isinstance(record, TextPiece)]


def test_records_come_in_the_documented_order(tokenizer):
    session = Session(chat_model(tokenizer, "Hello you", context_size=200))
    records = ask(session, "Hi")
    kinds = [kind for kind, _ in itertools.groupby(type(record) for record in records)]
    assert kinds == [PromptProgress, TextPiece, Finished]
    finished = records[-1]
    assert finished.reason == "stop"
    assert finished.text == "Hello you" == "".join(piece.text for piece in pieces(records)) + finished.tail
    assert finished.ids == tuple(piece.token for piece in pieces(records))
    assert finished.ids == tuple(tokenizer.encode("Hello you", parse_special=False))
    assert all(-0.01 < piece.logprob <= 0 for piece in pieces(records)), "the script is nearly certain"


def test_timings_count_tokens(tokenizer):
    session = Session(chat_model(tokenizer, "abc", context_size=200))
    first = complete(session, range(50, 70))[-1].timings
    assert (first.prompt_tokens, first.reused_tokens, first.generated_tokens) == (20, 0, 3)
    assert first.context_used == 20 + 3, "the end-of-generation token is not evaluated"
    second = complete(session, range(50, 71))[-1].timings
    assert (second.prompt_tokens, second.reused_tokens) == (1, 20)
    assert first.prompt_seconds > 0 and first.generate_seconds > 0


def test_text_of_any_script_arrives_whole(tokenizer):
    text = "naïve café 日本語 🙂 <|im_end|> end"
    session = Session(chat_model(tokenizer, text, context_size=400))
    records = ask(session, "Hi")
    assert records[-1].text == text
    assert "�" not in "".join(piece.text for piece in pieces(records))


def test_a_character_cut_short_becomes_a_replacement_in_the_tail(tokenizer):
    ids = tokenizer.encode("🙂", parse_special=False)[:2]
    finished = complete(Session(chat_model(tokenizer, ids)))[-1]
    assert (finished.text, finished.tail) == ("�", "�")


def test_a_stop_string_may_be_met_by_the_very_last_character(tokenizer):
    ids = tokenizer.encode("ab🙂", parse_special=False)[:-1]
    model = chat_model(tokenizer, ids, ends=False)
    finished = complete(Session(model), max_tokens=len(ids), stop=("b\ufffd",))[-1]
    assert (finished.reason, finished.text) == ("stop", "a")


def test_padding_beyond_the_vocabulary_is_never_chosen(tokenizer):
    model = chat_model(tokenizer, [tokenizer.n_tokens + 5], n_vocabulary=tokenizer.n_tokens + 40)
    sampling = SamplingSettings(temperature=1, seed=1)
    ids = complete(Session(model), sampling=sampling, max_tokens=30)[-1].ids
    assert ids and max(ids) < tokenizer.n_tokens


TURNS = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"


@pytest.mark.parametrize("template", [TURNS, "{{ bos_token }}" + TURNS])
def test_a_prompt_begins_with_one_bos_and_a_reply_keeps_its_space(template):
    metadata = sentence_piece_metadata(
        [("▁", -1.0), ("▁H", -1.0)], chat_template=template, add_eos_token=True
    )
    tokenizer = load_tokenizer(metadata)
    space_h = tokenizer.vocabulary.texts.index("▁H")
    model = chat_model(tokenizer, [space_h, tokenizer.eos_id], ends=False)
    session = Session(model)
    finished = ask(session, "Hi")[-1]
    ids = list(session.tokens)
    assert ids[0] == tokenizer.bos_id and tokenizer.bos_id not in ids[1:]
    assert tokenizer.eos_id not in ids, "nothing can follow an end"
    assert tokenizer.decode(ids[:-1]) == "[user]Hi[assistant]"
    assert (finished.text, finished.reason) == (" H", "stop")


@pytest.mark.parametrize("max_tokens", [0, 1, 3])
def test_max_tokens(tokenizer, max_tokens):
    records = complete(Session(chat_model(tokenizer, "abcdefgh")), max_tokens=max_tokens)
    assert len(pieces(records)) == max_tokens
    assert records[-1].reason == "length"
    assert records[-1].text == "abcdefgh"[:max_tokens]


def test_an_end_at_once_is_an_empty_reply(tokenizer):
    model = chat_model(tokenizer, behaviour=FakeBehaviour(script=[sorted(tokenizer.eog_ids)[0]]))
    finished = complete(Session(model))[-1]
    assert (finished.reason, finished.text, finished.ids) == ("stop", "", ())


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (("fox",), "The quick brown "),
        (("own fox",), "The quick br"),
        (("fox", "quick"), "The "),
        (("x jumps!",), "The quick brown fox jumps"),
        (("",), "The quick brown fox jumps"),
        (("T",), ""),
    ],
)
def test_stop_strings(tokenizer, stop, text):
    session = Session(chat_model(tokenizer, "The quick brown fox jumps", context_size=100))
    records = complete(session, stop=stop)
    assert records[-1].text == text
    assert "".join(piece.text for piece in pieces(records)) + records[-1].tail == text
    assert records[-1].reason == "stop"


def test_text_held_back_for_a_stop_string_is_the_tail(tokenizer):
    session = Session(chat_model(tokenizer, "please", context_size=100))
    finished = complete(session, stop=("lease me",))[-1]
    assert (finished.text, finished.tail) == ("please", "lease")
    limited = complete(session, stop=("lease me",), max_tokens=2)[-1]
    assert (limited.reason, limited.text) == ("length", "pl")


def test_a_character_split_over_tokens_can_be_a_stop_string(tokenizer):
    assert len(tokenizer.encode("é", parse_special=False)) == 2
    assert complete(Session(chat_model(tokenizer, "café!")), stop=("é",))[-1].text == "caf"


@pytest.mark.parametrize(("length", "n_written"), [(62, 3), (63, 2), (64, 1)])
def test_the_context_is_used_to_the_last_place(tokenizer, length, n_written):
    session = Session(chat_model(tokenizer, "abcdefgh", context_size=64))
    finished = complete(session, [50] * length)[-1]
    assert finished.reason == "context"
    assert finished.text == "abcdefgh"[:n_written]
    assert finished.timings.context_used == 64


def test_a_prompt_beyond_the_context_is_refused(tokenizer):
    with pytest.raises(ContextOverflowError, match=r"65.*64"):
        complete(Session(chat_model(tokenizer, context_size=64)), [50] * 65)


def test_cancel_between_tokens_keeps_the_text(tokenizer):
    session = Session(chat_model(tokenizer, "abcdefgh"))
    shown = []
    request = CompletionRequest((50, 51), GREEDY, stop=("defX",))
    for record in generate(session, request, lambda: len(shown) >= 5):
        if isinstance(record, TextPiece):
            shown.append(record.text)
    assert (record.reason, record.text, record.tail) == ("cancelled", "abcde", "de")


def test_cancel_between_prompt_chunks(tokenizer):
    session = Session(chat_model(tokenizer, "abc"))
    seen = []
    request = CompletionRequest(tuple(range(50, 90)), GREEDY)
    for record in generate(session, request, lambda: len(seen) >= 3):
        seen.append(record)
    assert record.reason == "cancelled"
    assert record.timings.prompt_tokens == 16 == record.timings.context_used
    assert complete(session, range(50, 90))[-1].text == "abc"


def test_invalid_numbers_in_the_middle_lose_no_text(tokenizer):
    model = chat_model(tokenizer, "abcdefgh", behaviour=FakeBehaviour(invalid_after=7))
    seen = []
    with pytest.raises(InvalidNumbersError):
        for record in generate(Session(model), CompletionRequest((50, 51), GREEDY, stop=("deX",)), never):
            seen.append(record)
    assert "".join(piece.text for piece in pieces(seen)) == "abcde"
    assert seen[-1] == TextPiece("de", NO_TOKEN, 0.0)


def test_after_invalid_numbers_the_prompt_is_read_anew(tokenizer):
    model = chat_model(tokenizer, "abc", behaviour=FakeBehaviour(invalid_after=3))
    session = Session(model)
    with pytest.raises(InvalidNumbersError):
        complete(session)
    model.behaviour.invalid_after = None
    finished = complete(session)[-1]
    assert (finished.text, finished.timings.reused_tokens) == ("abc", 0)


def test_a_seed_gives_the_same_reply_again(tokenizer):
    def reply(seed):
        session = Session(chat_model(tokenizer))
        sampling = SamplingSettings(temperature=1.5, seed=seed)
        return complete(session, sampling=sampling, max_tokens=20)[-1].ids

    assert reply(1) == reply(1) != reply(2)


def test_regenerating_editing_and_switching_chats_equal_fresh_sessions(tokenizer):
    one = chat_model(tokenizer, context_size=300, windows=(0, 12))
    session = Session(one)
    a, b = ["Hello there"], ["Another chat"]
    conversations = [a, a, [*a, "x", "And then?"], b, a, ["Hello where"], [*a, "y", "And then?"]]
    for conversation in conversations:
        ours = ask(session, *conversation, max_tokens=12)[-1]
        fresh = ask(Session(one), *conversation, max_tokens=12)[-1]
        assert (ours.ids, ours.text) == (fresh.ids, fresh.text)


def test_the_session_keeps_the_ids_that_were_sampled_not_their_spelling(tokenizer):
    letters = [tokenizer.encode(letter, parse_special=False)[0] for letter in "the"]
    assert tokenizer.encode("the", parse_special=False) != letters
    session = Session(chat_model(tokenizer, letters, context_size=100))
    complete(session, max_tokens=3)
    assert list(session.tokens)[3:] == letters[:2], "the last one has no need to be evaluated"


def test_penalties_leave_the_end_of_a_reply_alone(tokenizer):
    """The prompt of a chat is full of end-of-message tokens, which must not become less likely by that."""
    model = chat_model(tokenizer, "ZQX", context_size=200)
    sampling = SamplingSettings(temperature=0, repetition_penalty=1e6, repetition_window=-1)
    finished = ask(Session(model), "one", "two", "three", sampling=sampling)[-1]
    assert (finished.text, finished.reason) == ("ZQX", "stop")


# Overflow


def size_of(tokenizer, *contents):
    session = Session(chat_model(tokenizer, "x", context_size=5000))
    return ask(session, *contents, max_tokens=0)[-1].timings.prompt_tokens


def history(n_turns):
    return [text for turn in range(n_turns) for text in (f"question {turn}", f"answer {turn}")]


def test_old_turns_are_dropped_whole_and_the_system_prompt_stays(tokenizer):
    contents = [("Be brief.",), *history(20), "Last question"]
    room = 8
    session = Session(chat_model(tokenizer, "ok", context_size=200))
    records = ask(session, *contents, max_tokens=room)
    assert isinstance(records[0], ContextTrimmed)
    dropped = records[0].dropped_messages
    assert dropped % 2 == 0 and 0 < dropped < 40
    text = "".join(map(tokenizer.token_text, session.tokens))
    assert "Be brief." in text.replace("Ġ", " ")
    kept = [contents[0], *contents[1 + dropped :]]
    n_read = records[-1].timings.prompt_tokens
    assert n_read == size_of(tokenizer, *kept) <= 200 - room
    turn = size_of(tokenizer, *history(2)[2:], "x") - size_of(tokenizer, "x")
    assert n_read > 200 - room - 200 // 4 - turn, "no more than a step and a turn too much is dropped"


def test_a_long_chat_is_trimmed_in_steps_and_mostly_reuses_the_cache(tokenizer):
    session = Session(chat_model(tokenizer, "ok", context_size=400))
    contents = [("Be brief.",)]
    n_dropped, n_read = [], 0
    for turn in range(40):
        records = ask(session, *contents, f"question {turn}", max_tokens=10)
        n_dropped.append(records[0].dropped_messages if isinstance(records[0], ContextTrimmed) else 0)
        n_read += records[-1].timings.prompt_tokens
        contents += [f"question {turn}", records[-1].text]
    assert n_dropped == sorted(n_dropped) and n_dropped[-1] > 40
    assert len(set(n_dropped)) < 15
    assert n_read < 4 * size_of(tokenizer, *contents)


def test_beside_a_large_system_prompt_as_little_as_possible_is_dropped(tokenizer):
    """A whole step cannot be freed here; that is no reason to leave out every turn."""
    contents = [("word " * 60,), *history(2), "Last"]
    size = size_of(tokenizer, *contents)
    without_one = size_of(tokenizer, contents[0], *history(2)[2:], "Last")
    session = Session(chat_model(tokenizer, "ok", context_size=without_one + 10))
    assert size_of(tokenizer, contents[0], "Last") > size - session.context_size // 4
    assert ask(session, *contents, max_tokens=10)[0] == ContextTrimmed(2)


def test_a_chat_that_fits_is_not_trimmed(tokenizer):
    contents = [*history(3), "Last"]
    size = size_of(tokenizer, *contents)
    fits = ask(Session(chat_model(tokenizer, "ok", context_size=size + 5)), *contents, max_tokens=5)
    assert not isinstance(fits[0], ContextTrimmed)
    tight = ask(Session(chat_model(tokenizer, "ok", context_size=size + 4)), *contents, max_tokens=5)
    assert tight[0] == ContextTrimmed(2)


def test_a_last_message_may_use_the_room_of_the_reply(tokenizer):
    size = size_of(tokenizer, "A question of some length")
    session = Session(chat_model(tokenizer, "ok", context_size=size))
    records = ask(session, *history(2), "A question of some length", max_tokens=50)
    assert records[0] == ContextTrimmed(4)
    assert (records[-1].reason, records[-1].text) == ("context", "o")


def test_one_message_larger_than_the_context_is_refused_with_both_numbers(tokenizer):
    size = size_of(tokenizer, ("Be brief.",), "word " * 100)
    with pytest.raises(ContextOverflowError, match=rf"{size} tokens.*64"):
        ask(Session(chat_model(tokenizer, context_size=64)), ("Be brief.",), *history(2), "word " * 100)


def test_a_model_without_a_template_cannot_chat(tokenizer):
    model = chat_model(tokenizer)
    model.template = None
    with pytest.raises(TemplateError):
        ask(Session(model), "Hi")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    st.text("abcdé<|🙂", max_size=20),
    st.lists(st.text("abcdé", max_size=4), max_size=3),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_the_reply_is_always_what_its_records_say(tokenizer, text, stops, max_tokens, cancel_after):
    session = Session(chat_model(tokenizer, text, context_size=40) if text else chat_model(tokenizer))
    seen = []
    request = CompletionRequest((50, 51), GREEDY, max_tokens, tuple(stops))
    for record in generate(session, request, lambda: len(seen) >= cancel_after):
        seen.append(record)
    finished = seen[-1]
    assert finished.text == "".join(piece.text for piece in pieces(seen)) + finished.tail
    assert finished.ids == tuple(piece.token for piece in pieces(seen))
    assert len(finished.ids) <= max_tokens
    assert not any(stop and stop in finished.text for stop in stops)
    if text:
        assert text.startswith(finished.text.rstrip("�"))
