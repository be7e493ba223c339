"""Chats survive: a killed program, a damaged file, a full disk, odd text."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.chats import schema
from app.chats.store import ChatStore, open_in_memory, open_store, title_of
from app.errors import ChatStoreError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats.sqlite"


def opened(path: Path) -> ChatStore:
    store, notice = open_store(path)
    assert notice == ""
    return store


def test_what_was_written_is_there_after_opening_again(path: Path) -> None:
    store = opened(path)
    chat, question = store.add_chat("Is it there?")
    answer = store.add_message(chat.id, "assistant", "", "partial", "a model")
    store.journal(answer.id, "It")
    store.finish(answer.id, "It is.", "complete")
    store.close()
    again = opened(path)
    assert [item.title for item in again.chats()] == ["Is it there?"]
    assert [(m.id, m.role, m.content, m.state, m.model) for m in again.messages(chat.id)] == [
        (question.id, "user", "Is it there?", "complete", ""),
        (answer.id, "assistant", "It is.", "complete", "a model"),
    ]
    again.close()


def test_delete_regenerate_and_open_again(path: Path) -> None:
    store = opened(path)
    chat, _ = store.add_chat("q")
    answer = store.add_message(chat.id, "assistant", "bad", "complete", "m")
    store.delete_messages_from(chat.id, answer.id)
    store.add_message(chat.id, "assistant", "good", "complete", "m")
    store.close()
    again = opened(path)
    assert [message.content for message in again.messages(chat.id)] == ["q", "good"]


def test_deleting_messages_leaves_other_chats_alone(path: Path) -> None:
    store = opened(path)
    first, question = store.add_chat("first")
    second, _ = store.add_chat("second")
    store.delete_messages_from(first.id, question.id)
    assert store.messages(first.id) == []
    assert len(store.messages(second.id)) == 1


def test_deleting_a_chat_deletes_its_messages(path: Path) -> None:
    store = opened(path)
    chat, _ = store.add_chat("gone")
    store.delete_chat(chat.id)
    assert store.chats() == []
    store.close()
    assert sqlite3.connect(path).execute("SELECT count(*) FROM messages").fetchone() == (0,)


def test_a_message_to_a_chat_that_is_gone_is_refused(path: Path) -> None:
    store = opened(path)
    chat, _ = store.add_chat("gone")
    store.delete_chat(chat.id)
    with pytest.raises(ChatStoreError):
        store.add_message(chat.id, "user", "anyone?")
    store.add_chat("still usable")


def test_the_chat_changed_last_comes_first(path: Path) -> None:
    store = opened(path)
    first, _ = store.add_chat("first")
    store.add_chat("second")
    time.sleep(0.01)
    store.add_message(first.id, "user", "more")
    assert [chat.title for chat in store.chats()] == ["first", "second"]


@pytest.mark.parametrize(
    "text",
    ["<b>x</b> &lt;", "a\x00b", "Žluťák 例え 😀", "line\r\nline\u2028\u2029", "", "'; DROP TABLE chats; --"],
)
def test_text_comes_back_as_it_went_in(path: Path, text: str) -> None:
    store = opened(path)
    chat, _ = store.add_chat(text)
    assert store.messages(chat.id)[0].content == text


def test_a_lone_surrogate_becomes_a_replacement_character(path: Path) -> None:
    store = opened(path)
    chat, _ = store.add_chat("a\ud800b 😀")
    assert store.messages(chat.id)[0].content == "a\ufffdb 😀"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("short", "short"),
        ("  two\n\nlines ", "two lines"),
        (" \n", "Untitled"),
        ("word " * 40, "word " * 11 + "word…"),
        ("x" * 80, "x" * 60 + "…"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert title_of(text) == title


KILLED = """
import sys, time
from pathlib import Path
from app.chats.store import open_store
store, _ = open_store(Path(sys.argv[1]))
chat, _ = store.add_chat("my question")
answer = store.add_message(chat.id, "assistant", "", "partial", "m")
store.journal(answer.id, "the first half")
print("ready", flush=True)
time.sleep(60)
"""


def test_a_killed_program_loses_neither_the_question_nor_the_journal(path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.wait()
    process.stdout.close()
    store = opened(path)
    assert store.mark_interrupted() == 1
    question, answer = store.messages(store.chats()[0].id)
    assert (question.content, question.state) == ("my question", "complete")
    assert (answer.content, answer.state) == ("the first half", "interrupted")
    assert store.mark_interrupted() == 0


def test_a_message_is_committed_when_it_is_sent(path: Path) -> None:
    store = opened(path)
    store.add_chat("seen by others")
    other = sqlite3.connect(path)
    assert other.execute("SELECT content FROM messages").fetchall() == [("seen by others",)]
    other.close()


def test_the_write_ahead_log_is_on_and_foreign_keys_hold(path: Path) -> None:
    store = opened(path)
    connection = store._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_a_person_s_message_waits_for_the_disk_and_the_journal_does_not(path: Path) -> None:
    store = opened(path)
    chat, _ = store.add_chat("q")
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    answer = store.add_message(chat.id, "assistant", "", "partial", "m")
    store.journal(answer.id, "x")
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (1,)  # NORMAL
    store.finish(answer.id, "xy", "complete")
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)


def write_some(path: Path) -> bytes:
    store = opened(path)
    for number in range(50):
        store.add_chat(f"chat {number} " + "text " * 200)
    store.close()
    return path.read_bytes()


@pytest.mark.parametrize("damage", ["text", "header", "cut", "middle"])
def test_a_damaged_file_is_kept_aside_and_a_new_one_begun(path: Path, damage: str) -> None:
    content = write_some(path)
    damaged = {
        "text": b"this is no database, whatever its name says" * 20,
        "header": b"\0" * 100 + content[100:],
        "cut": content[: len(content) // 2],
        "middle": content[:4096] + b"\xff" * (len(content) - 8192) + content[-4096:],
    }[damage]
    path.write_bytes(damaged)
    store, notice = open_store(path)
    kept = [item for item in path.parent.iterdir() if "damaged" in item.name]
    assert len(kept) == 1
    assert kept[0].read_bytes() == damaged
    assert kept[0].name in notice
    assert store.chats() == []
    store.add_chat("goes on")
    store.close()
    assert [chat.title for chat in opened(path).chats()] == ["goes on"]


def test_an_empty_file_is_a_new_store(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    assert opened(path).chats() == []


def test_two_damaged_files_are_both_kept(path: Path) -> None:
    path.parent.mkdir()
    for number in range(2):
        path.write_bytes(b"damage %d" % number * 100)
        open_store(path)[0].close()
        for extra in path.parent.glob("chats.sqlite*"):
            extra.unlink()
    assert len([item for item in path.parent.iterdir() if "damaged" in item.name]) == 2


def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    write_some(path)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(schema.STEPS) + 1}")
    connection.close()
    with pytest.raises(ChatStoreError, match="newer Causerie"):
        open_store(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM chats").fetchone() == (50,)


def test_a_folder_in_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(ChatStoreError, match="cannot be opened"):
        open_store(path)


def test_a_full_disk_is_told_and_the_store_goes_on(path: Path) -> None:
    store = opened(path)
    chat, _ = store.add_chat("before")
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own "disk is full"
    with pytest.raises(ChatStoreError, match="full"):
        store.add_message(chat.id, "user", "x" * 100_000)
    assert [message.content for message in store.messages(chat.id)] == ["before"]
    store._connection.execute("PRAGMA max_page_count = 100000")
    store.add_message(chat.id, "user", "after")
    assert len(store.messages(chat.id)) == 2


def test_another_program_that_holds_the_file_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.chats.store.BUSY_SECONDS", 0.05)
    store = opened(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(ChatStoreError, match="locked"):
        store.add_chat("waits in vain")
    other.execute("ROLLBACK")
    store.add_chat("now it can")
    assert len(store.chats()) == 1


def test_another_thread_is_refused(path: Path) -> None:
    store = opened(path)
    caught: list[BaseException] = []

    def use() -> None:
        try:
            store.chats()
        except ChatStoreError as error:
            caught.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "thread" in str(caught[0])


def test_two_threads_each_with_a_store_lose_nothing(path: Path) -> None:
    opened(path).close()

    def write(name: str) -> None:
        store, _ = open_store(path)
        for number in range(30):
            store.add_chat(f"{name} {number}")
        store.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened(path).chats()) == 60


def test_one_damaged_row_does_not_take_the_chat_with_it(path: Path) -> None:
    store = opened(path)
    chat, question = store.add_chat("good")
    store.add_message(chat.id, "assistant", "good too")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE messages SET content = CAST(x'66ff66' AS TEXT) WHERE id = ?", (question.id,))
    connection.commit()
    connection.close()
    assert [message.content for message in store.messages(chat.id)] == ["f\ufffdf", "good too"]


def test_a_store_in_memory_works_and_leaves_nothing(tmp_path: Path) -> None:
    store = open_in_memory()
    store.add_chat("secret")
    assert len(store.chats()) == 1
    store.close()
    assert list(tmp_path.iterdir()) == []


# Every step of the schema has a test here named after it: test_step_N.


def test_step_1() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.upgrade(connection)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"chats", "messages"}
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    schema.upgrade(connection)  # again changes nothing


def test_every_step_has_a_test() -> None:
    missing = [n for n in range(1, len(schema.STEPS) + 1) if f"test_step_{n}" not in globals()]
    assert missing == []


def test_a_step_that_fails_leaves_the_version_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    broken = (*schema.STEPS, ("CREATE TABLE extra (x)", "this is no statement"))
    monkeypatch.setattr(schema, "STEPS", broken)
    with pytest.raises(sqlite3.OperationalError):
        schema.upgrade(connection)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'extra'").fetchone() == (0,)
