"""The worker: one terminal event per request, whatever happens; cancelling; the old model stays."""

import logging
import queue
import threading
import time

import pytest

from engine.errors import (
    BackendError,
    CauserieError,
    ContextOverflowError,
    DeviceLostError,
    ModelFileError,
    NoRoomBesideError,
    OutOfMemoryError,
)
from engine.events import (
    Failed,
    GenerationEvent,
    Loaded,
    LoadProgress,
    RequestCancelled,
    Unloaded,
    is_terminal,
)
from engine.requests import (
    ChatRequest,
    CompletionRequest,
    Finished,
    LoadSettings,
    Message,
    TextPiece,
)
from engine.worker import Worker
from tests.helpers.fake_chat import GREEDY, tiny_tokenizer
from tests.helpers.tiny_model import write_tiny_model
from tests.helpers.worker_bench import Bench

LONG = "abcdefgh" * 30


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny_tokenizer(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture
def bench(tokenizer):
    bench = Bench(tokenizer)
    yield bench
    assert bench.worker.shutdown(), "the thread did not end"
    while not bench.events.empty():
        bench.next()
    ended = [event.request_id for event in bench.history if is_terminal(event)]
    assert len(ended) == len(set(ended)), "a request ended twice"
    assert set(ended) == set(range(1, bench.worker._last_id + 1)), "a request never ended"


def test_load_then_chat(bench):
    events = bench.until_end(bench.worker.load("hello", LoadSettings(context_size=123)))
    assert [event.share for event in events[:-1]] == [0, 0.25, 0.5, 0.75, 1]
    info = events[-1].info
    assert (str(info.path), info.context_size, info.memory_bytes) == ("hello", 123, 6)
    assert info.has_template
    events = bench.until_end(bench.ask())
    assert all(isinstance(event, GenerationEvent) for event in events)
    finished = events[-1].record
    assert (finished.text, finished.reason) == ("hello", "stop")
    pieces = [event.record.text for event in events if isinstance(event.record, TextPiece)]
    assert "".join(pieces) + finished.tail == "hello"


def test_shares_never_fall_and_end_at_one(bench):
    bench.shares = [0.5, 0.25, 0.75, 1.25]
    events = bench.until_end(bench.worker.load("hello"))
    assert [event.share for event in events[:-1]] == [0.5, 0.5, 0.75, 1]


def test_everything_happens_in_the_worker_thread(tokenizer):
    threads = set()
    bench = Bench(tokenizer)
    bench.worker.shutdown()
    done = threading.Event()

    def on_event(event):
        threads.add(threading.current_thread())
        if is_terminal(event):
            done.set()

    worker = Worker(on_event, bench.load_model)
    worker.load("hello")
    assert done.wait(10)
    worker.shutdown()
    assert len(threads) == 1 and threads == bench.load_threads
    assert threading.current_thread() not in threads


def test_complete_continues_raw_ids(bench):
    bench.load("hello")
    request = CompletionRequest((50, 51), GREEDY, max_tokens=2)
    finished = bench.until_end(bench.worker.complete(request))[-1].record
    assert finished.reason == "length" and len(finished.ids) == 2


def test_requests_are_served_in_order(bench):
    load = bench.worker.load
    ids = [load("one"), bench.ask(), load("two"), bench.ask(), bench.worker.unload()]
    ends = [bench.until_end(request_id)[-1] for request_id in ids]
    assert [event.request_id for event in ends] == ids
    assert (ends[1].record.text, ends[3].record.text) == ("one", "two")
    assert isinstance(ends[4], Unloaded)
    assert all(model.closed for model in bench.models)


def test_without_a_model_a_reply_fails_with_a_sentence(bench):
    for request_id in (bench.ask(), bench.worker.complete(CompletionRequest((1,)))):
        (event,) = bench.until_end(request_id)
        assert isinstance(event, Failed) and isinstance(event.error, BackendError)
        assert event.error.advice


def test_a_failing_load_keeps_the_old_model(bench):
    bench.load("old")
    bench.failures["bad"] = ModelFileError("bad is no model.")
    event = bench.load("bad")
    assert isinstance(event, Failed) and event.error.title == "bad is no model."
    assert bench.reply() == "old"
    assert not bench.models[0].closed


def test_a_new_model_closes_the_old_one_after_it_is_ready(bench):
    bench.load("old")
    closed_meanwhile = []
    bench.on_load_step = lambda share: closed_meanwhile.append(bench.models[0].closed)
    assert isinstance(bench.load("new"), Loaded)
    assert not any(closed_meanwhile) and bench.models[0].closed
    assert bench.reply() == "new"


def test_two_models_that_do_not_fit_say_so_before_anything_is_dropped(bench):
    bench.load("old")
    bench.failures["large"] = OutOfMemoryError("It needs 9 GB.")
    error = bench.load("large").error
    assert isinstance(error, NoRoomBesideError)
    assert "beside" in error.title and "9 GB" in error.title and "Close" in error.advice
    assert bench.reply() == "old"


@pytest.mark.parametrize(("beyond", "kind"), [(0, NoRoomBesideError), (1, OutOfMemoryError)])
def test_closing_the_old_model_is_advised_only_where_it_could_help(bench, beyond, kind):
    bench.load("old")
    lacking = bench.models[0].memory.total + beyond
    bench.failures["large"] = OutOfMemoryError("It needs 9 TB.", lacking=lacking)
    error = bench.load("large").error
    assert type(error) is kind and ("Close" in error.advice) == (beyond == 0)
    assert bench.reply() == "old"


def test_replace_closes_the_old_model_first(bench):
    bench.load("old")
    closed_meanwhile = []
    bench.on_load_step = lambda share: closed_meanwhile.append(bench.models[0].closed)
    assert isinstance(bench.until_end(bench.worker.load("new", replace=True))[-1], Loaded)
    assert all(closed_meanwhile)
    bench.failures["large"] = OutOfMemoryError("It needs 9 GB.")
    event = bench.until_end(bench.worker.load("large", replace=True))[-1]
    assert event.error.title == "It needs 9 GB."
    assert isinstance(bench.until_end(bench.ask())[-1], Failed)


def test_a_context_that_does_not_fit_closes_the_new_model(bench):
    bench.load("old", context_size=10)
    bench.behaviour.memory_bytes = 1000
    event = bench.load("new", context_size=200)
    assert isinstance(event, Failed) and isinstance(event.error, OutOfMemoryError)
    assert [model.closed for model in bench.models] == [False, True]


def test_cancel_a_load(bench):
    bench.load("old")
    reached, go_on = threading.Event(), threading.Event()

    def wait_half_way(share):
        if share == 0.5:
            reached.set()
            go_on.wait(10)

    bench.on_load_step = wait_half_way
    request_id = bench.worker.load("new")
    assert reached.wait(10)
    bench.worker.cancel(request_id)
    go_on.set()
    assert isinstance(bench.until_end(request_id)[-1], RequestCancelled)
    assert max(event.share for event in bench.history[-3:] if isinstance(event, LoadProgress)) < 0.5
    assert bench.reply() == "old"


def test_cancel_a_load_after_its_last_step(bench):
    bench.load("old")
    request_id = None
    started = threading.Event()

    def cancel_at_the_end(model):
        assert started.wait(10)
        bench.worker.cancel(request_id)

    bench.on_loaded = cancel_at_the_end
    request_id = bench.worker.load("new")
    started.set()
    assert isinstance(bench.until_end(request_id)[-1], RequestCancelled)
    assert [model.closed for model in bench.models] == [False, True]
    assert bench.reply(), "the old model still answers"


def test_cancel_a_reply_keeps_its_text(bench):
    bench.load(LONG)
    bench.behaviour.seconds_per_token = 0.01
    request_id = bench.ask()
    bench.first_piece()
    bench.worker.cancel(request_id)
    finished = bench.until_end(request_id)[-1].record
    assert finished.reason == "cancelled"
    assert LONG.startswith(finished.text) and 1 <= len(finished.text) < 30


def test_cancel_while_a_prompt_is_read(bench):
    bench.load("hello")
    bench.behaviour.seconds_per_token = 0.02
    request_id = bench.ask("a long question " * 8)
    bench.next()
    started = time.monotonic()
    bench.worker.cancel(request_id)
    finished = bench.until_end(request_id)[-1].record
    assert (finished.reason, finished.text) == ("cancelled", "")
    assert time.monotonic() - started < 1, "one chunk of 8 tokens takes 0.16 s, the prompt 2.5 s"


def test_cancel_before_its_turn(bench):
    bench.load(LONG)
    bench.behaviour.seconds_per_token = 0.01
    first, second = bench.ask(), bench.ask()
    bench.first_piece()
    bench.worker.cancel(second)
    bench.worker.cancel(first)
    assert bench.until_end(first)[-1].record.reason == "cancelled"
    assert bench.until_end(second) == [RequestCancelled(second)]


def test_cancel_of_what_is_over_or_never_was_is_ignored(bench):
    bench.load("hello")
    request_id = bench.ask()
    bench.until_end(request_id)
    bench.worker.cancel(request_id)
    bench.worker.cancel(10_000)
    assert bench.reply() == "hello"


def test_an_error_of_the_engine_passes_through_and_the_worker_lives_on(bench):
    bench.load("hello", context_size=40)
    event = bench.until_end(bench.ask("far too long " * 20))[-1]
    assert isinstance(event, Failed) and isinstance(event.error, ContextOverflowError)
    assert bench.reply() == "hello"


def test_a_lost_device_loses_no_text(bench):
    bench.load(LONG)
    bench.behaviour.seconds_per_token = 0.005
    request_id = bench.ask()
    bench.first_piece()
    bench.behaviour.lost = True
    assert isinstance(bench.until_end(request_id)[-1].error, DeviceLostError)
    records = [event.record for event in bench.history if isinstance(event, GenerationEvent)]
    shown = [record for record in records if isinstance(record, TextPiece)]
    written = bench.behaviour.script[: len(shown)]
    assert [piece.token for piece in shown] == written
    assert "".join(piece.text for piece in shown) == bench.tokenizer.decode(written)
    bench.behaviour.lost = False
    assert LONG.startswith(bench.reply(max_tokens=8))


@pytest.mark.error_logs
def test_the_unexpected_becomes_one_sentence_and_a_logged_traceback(bench, caplog):
    bench.load("hello")
    bench.failures["odd"] = ZeroDivisionError("seven of nine")
    with caplog.at_level(logging.ERROR):
        event = bench.load("odd")
    assert type(event.error) is CauserieError
    assert "Something unexpected happened" in event.error.title and "seven of nine" in event.error.title
    assert "Traceback" not in str(event.error)
    assert any(record.exc_info for record in caplog.records)
    assert bench.reply() == "hello"


def test_python_running_out_of_memory_is_named_as_that(bench):
    bench.failures["huge"] = MemoryError()
    assert isinstance(bench.load("huge").error, OutOfMemoryError)


@pytest.mark.error_logs
def test_a_listener_that_fails_does_not_stop_the_worker(tokenizer):
    seen = queue.Queue()

    def on_event(event):
        seen.put(event)
        raise RuntimeError("the window is gone")

    bench = Bench(tokenizer)
    bench.worker.shutdown()
    worker = Worker(on_event, bench.load_model)
    worker.load("one")
    worker.load("two")
    ended = 0
    while ended < 2:
        ended += is_terminal(seen.get(timeout=10))
    assert worker.shutdown()


def test_shutdown_in_the_middle_of_a_reply(bench):
    bench.load(LONG)
    bench.behaviour.seconds_per_token = 0.05
    first, second = bench.ask(), bench.ask()
    bench.first_piece()
    started = time.monotonic()
    assert bench.worker.shutdown()
    assert time.monotonic() - started < 1
    assert bench.until_end(first)[-1].record.reason == "cancelled"
    assert bench.until_end(second) == [RequestCancelled(second)]
    assert bench.models[0].closed
    with pytest.raises(CauserieError):
        bench.ask()


def test_shutdown_from_an_event(tokenizer):
    ended = threading.Event()
    bench = Bench(tokenizer)
    bench.worker.shutdown()

    def on_event(event):
        if is_terminal(event):
            worker.shutdown()
            ended.set()

    worker = Worker(on_event, bench.load_model)
    worker.load("one")
    assert ended.wait(10)
    assert worker.shutdown()


def test_many_threads_may_ask_and_cancel(bench):
    bench.load("hello")
    ids = queue.Queue()

    def ask_and_cancel():
        for turn in range(10):
            request_id = bench.ask()
            ids.put(request_id)
            if turn % 2:
                bench.worker.cancel(request_id)

    threads = [threading.Thread(target=ask_and_cancel) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ends = {}
    while len(ends) < 40:
        event = bench.next()
        if is_terminal(event):
            ends[event.request_id] = event
    replies = [event.record for event in ends.values() if isinstance(event, GenerationEvent)]
    assert len(replies) >= 20
    assert all(isinstance(record, Finished) for record in replies)


def test_real_files_through_the_real_loader(tmp_path):
    """A tiny model on the fake backend, then files that are none: nothing but sentences comes out."""
    good = write_tiny_model(tmp_path / "good.gguf")
    short = tmp_path / "short.gguf"
    short.write_bytes(good.read_bytes()[:5000])
    events = queue.Queue()
    worker = Worker(events.put)

    def end_of(request_id):
        while True:
            event = events.get(timeout=30)
            if event.request_id == request_id and is_terminal(event):
                return event

    settings = LoadSettings(backend="fake", context_size=64)
    loaded = end_of(worker.load(good, settings))
    assert isinstance(loaded, Loaded) and loaded.info.context_size == 64 and loaded.info.has_template
    for bad in (short, tmp_path, tmp_path / "missing.gguf"):
        failed = end_of(worker.load(bad, settings))
        assert isinstance(failed, Failed) and isinstance(failed.error, ModelFileError), failed
    request = ChatRequest((Message("user", "Hi"),), GREEDY, max_tokens=3)
    assert len(end_of(worker.chat(request)).record.ids) == 3
    assert worker.shutdown()
