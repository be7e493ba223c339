"""The tables of the chat store, as a ladder of steps; `user_version` tells how many were climbed.

A step is never edited once it was released: a change is a new step, with a test of its own.
"""

from __future__ import annotations

import sqlite3

STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE chats (
            id INTEGER PRIMARY KEY,
            title TEXT NOT NULL,
            created REAL NOT NULL,
            changed REAL NOT NULL
        ) STRICT""",
        """CREATE TABLE messages (
            id INTEGER PRIMARY KEY,
            chat_id INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
            role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
            content TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('complete', 'partial', 'stopped', 'interrupted', 'error')),
            model TEXT NOT NULL,
            created REAL NOT NULL
        ) STRICT""",
        "CREATE INDEX messages_of_chat ON messages (chat_id, id)",
        "CREATE INDEX chats_by_change ON chats (changed)",
    ),
)


class NewerSchemaError(Exception):
    """The file was written by a newer Causerie."""


def upgrade(connection: sqlite3.Connection) -> None:
    """Climbs the steps that are missing, each in one transaction.  Raises `NewerSchemaError`."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(STEPS):
        raise NewerSchemaError(f"schema version {version}")
    for number, statements in enumerate(STEPS[version:], version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
