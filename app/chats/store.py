"""Chats in one SQLite file: kept from the moment a message is sent, whatever happens to the program.

What is durable when: a person's message and the end of a reply are forced to the disk before the call
returns (`synchronous=FULL`); the journal of a running reply is committed without waiting for the disk
(`NORMAL`), which survives a killed program and costs the window nothing.  Write-ahead logging keeps a
half-done write from ever being seen.

One `ChatStore` belongs to the thread that opened it (sqlite3 enforces that); another thread or program
opens its own.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.chats.chat import Chat, Role, State, StoredMessage
from app.chats.schema import NewerSchemaError, upgrade
from app.errors import ChatStoreError

log = logging.getLogger(__name__)

MAX_TITLE = 60
BUSY_SECONDS = 0.5
"""How long a write waits for another program that is writing."""
MAX_CHECKED_PAGES = 16_384
"""A file of more pages (64 MiB) is not read through at every start; its damage shows when it is met."""


class ChatStore:
    """Opened with `open_store`.  Every method raises `ChatStoreError` and leaves the store usable."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    def chats(self) -> list[Chat]:
        """All chats, the one changed last first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT id, title, created, changed FROM chats ORDER BY changed DESC, id DESC"
            ).fetchall()
        return [Chat(*row) for row in rows]

    def messages(self, chat_id: int) -> list[StoredMessage]:
        """The messages of a chat in order; none where there is no such chat."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT id, chat_id, role, content, state, model, created FROM messages"
                " WHERE chat_id = ? ORDER BY id",
                (chat_id,),
            ).fetchall()
        return [StoredMessage(*row) for row in rows]

    def add_chat(self, first_message: str) -> tuple[Chat, StoredMessage]:
        """Begins a chat with a person's message, in one transaction; its title is taken from it."""
        now = time.time()
        with self._writing() as connection:
            title = title_of(first_message)
            cursor = connection.execute(
                "INSERT INTO chats (title, created, changed) VALUES (?, ?, ?)", (title, now, now)
            )
            chat = Chat(_row_id(cursor), title, now, now)
            message = _insert(connection, chat.id, "user", first_message, "complete", "", now)
        return chat, message

    def add_message(
        self, chat_id: int, role: Role, content: str, state: State = "complete", model: str = ""
    ) -> StoredMessage:
        """Adds a message at the end of the chat."""
        now = time.time()
        with self._writing(durable=state != "partial") as connection:
            connection.execute("UPDATE chats SET changed = ? WHERE id = ?", (now, chat_id))
            return _insert(connection, chat_id, role, content, state, model, now)

    def journal(self, message_id: int, content: str) -> None:
        """Writes down a reply that is still running."""
        with self._writing(durable=False) as connection:
            connection.execute(
                "UPDATE messages SET content = ? WHERE id = ?", (_storable(content), message_id)
            )

    def finish(self, message_id: int, content: str, state: State) -> None:
        """Writes down the end of a reply."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE messages SET content = ?, state = ? WHERE id = ?",
                (_storable(content), state, message_id),
            )

    def delete_messages_from(self, chat_id: int, message_id: int) -> None:
        """Deletes that message of the chat and all after it."""
        with self._writing() as connection:
            connection.execute("DELETE FROM messages WHERE chat_id = ? AND id >= ?", (chat_id, message_id))

    def rename_chat(self, chat_id: int, title: str) -> None:
        with self._writing() as connection:
            connection.execute("UPDATE chats SET title = ? WHERE id = ?", (title_of(title), chat_id))

    def delete_chat(self, chat_id: int) -> None:
        """Deletes the chat with its messages."""
        with self._writing() as connection:
            connection.execute("DELETE FROM chats WHERE id = ?", (chat_id,))

    def mark_interrupted(self) -> int:
        """Marks replies that a crash left partial; how many there were.  Called once at start-up."""
        with self._writing() as connection:
            cursor = connection.execute("UPDATE messages SET state = 'interrupted' WHERE state = 'partial'")
            return cursor.rowcount

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise ChatStoreError(f"The chats could not be read: {error}.") from error

    @contextmanager
    def _writing(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        try:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise ChatStoreError(f"The chat could not be saved: {error}.") from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def open_store(path: Path) -> tuple[ChatStore, str]:
    """The store at that path, made where there is none, and a sentence for the person ("" mostly).

    A damaged file is set aside, never deleted, and a new one is begun.  Raises `ChatStoreError` where
    the file cannot be opened at all: `open_in_memory` lets the person chat all the same.
    """
    notice = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            connection = _connect(str(path))
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            aside = _set_aside(path)
            log.warning("chat store damaged, set aside: %r", error)
            notice = f"The file of your chats is damaged. It was kept as {aside.name}, and a new one begun."
            connection = _connect(str(path))
    except NewerSchemaError as error:
        raise ChatStoreError(
            f"The chats in {path} were written by a newer Causerie.", "Install the newer version again."
        ) from error
    except (sqlite3.Error, OSError) as error:
        raise ChatStoreError(f"The chats in {path} cannot be opened: {error}.") from error
    return ChatStore(connection), notice


def open_in_memory() -> ChatStore:
    """A store that is gone when the program ends."""
    return ChatStore(_connect(":memory:"))


def title_of(text: str) -> str:
    """The first words of a message in one line."""
    line = " ".join(_storable(text[:1000]).split())
    if len(line) <= MAX_TITLE:
        return line or "Untitled"
    return line[:MAX_TITLE].rsplit(" ", 1)[0].rstrip() + "…"


def _connect(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None)
    # one damaged text must not hide a whole chat
    connection.text_factory = lambda content: content.decode("utf-8", "replace")
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
        upgrade(connection)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        if pages <= MAX_CHECKED_PAGES:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise sqlite3.DatabaseError(f"file is damaged: {verdict}")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return "damaged" in str(error)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _set_aside(path: Path) -> Path:
    """Renames the file with its log, under a name that is not taken."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    count = 0
    while True:
        aside = path.with_name(f"{path.stem}.damaged-{stamp}{f'-{count}' if count else ''}{path.suffix}")
        if not aside.exists():
            break
        count += 1
    for ending in ("-wal", "-shm"):
        attached = path.with_name(path.name + ending)
        if attached.exists():
            attached.rename(aside.with_name(aside.name + ending))
    path.rename(aside)
    return aside


def _insert(
    connection: sqlite3.Connection,
    chat_id: int,
    role: Role,
    content: str,
    state: State,
    model: str,
    created: float,
) -> StoredMessage:
    content = _storable(content)
    cursor = connection.execute(
        "INSERT INTO messages (chat_id, role, content, state, model, created) VALUES (?, ?, ?, ?, ?, ?)",
        (chat_id, role, content, state, model, created),
    )
    return StoredMessage(_row_id(cursor), chat_id, role, content, state, model, created)


def _row_id(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None  # set by every INSERT
    return cursor.lastrowid


def _storable(text: str) -> str:
    """Lone surrogates, which no file in UTF-8 can hold, as replacement characters."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
