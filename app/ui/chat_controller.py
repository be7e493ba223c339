"""What happens to chats: send, stream, stop, regenerate, switch, delete, and all of it on disk.

The one owner of "which chat is shown" and "which reply runs".  A reply goes on while another chat is shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

from app.chats.chat import State, StoredMessage
from app.chats.store import ChatStore
from app.ui.chat_view import ChatView
from app.ui.engine_bridge import EngineBridge
from engine.errors import CauserieError
from engine.requests import ChatRequest, Finished, Message, SamplingSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

JOURNAL_MS = 700
"""Under the second that may be lost at a crash, with room for a busy machine."""


@dataclass
class _Reply:
    """The running reply. pieces: its text; saved: how many pieces the journal holds."""

    message: StoredMessage
    pieces: list[str] = field(default_factory=list)
    saved: int = 0
    note: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """What the side panel says when a reply begins."""

    system_prompt: str
    sampling: SamplingSettings
    max_tokens: int | None


class ChatController(QObject):
    """Between store, view and engine. failed: an error to show; chats_changed: the list is to be set anew."""

    failed = Signal(object)
    chats_changed = Signal()
    chat_shown = Signal()
    replying_changed = Signal(bool)
    reply_finished = Signal(object)

    def __init__(
        self,
        store: ChatStore,
        view: ChatView,
        bridge: EngineBridge,
        reply_settings: Callable[[], ReplySettings],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._view = view
        self._bridge = bridge
        self._reply_settings = reply_settings
        self._reply: _Reply | None = None
        self.chat_id: int | None = None
        self._journal_timer = QTimer(self)
        self._journal_timer.setInterval(JOURNAL_MS)
        self._journal_timer.timeout.connect(self._journal)
        bridge.text.connect(self._on_text)
        bridge.trimmed.connect(self._on_trimmed)
        bridge.finished.connect(self._on_finished)
        bridge.reply_failed.connect(self._on_reply_failed)
        bridge.reply_cancelled.connect(self._on_reply_cancelled)
        view.regenerate.connect(self.regenerate)

    @property
    def is_replying(self) -> bool:
        return self._reply is not None

    def new_chat(self) -> None:
        """Shows an empty chat; it is kept from its first message on."""
        self.chat_id = None
        self._view.show_messages([])
        self.chat_shown.emit()

    def open_chat(self, chat_id: int) -> None:
        if chat_id == self.chat_id:
            return
        messages = self._tried(lambda: self._store.messages(chat_id))
        if messages is None:
            return
        self.chat_id = chat_id
        if self._reply is not None and self._reply.message.chat_id == chat_id:
            running = self._reply.message
            self._view.show_messages([item for item in messages if item.id != running.id])
            self._view.begin_reply(replace(running, content=self._reply.text))
        else:
            self._view.show_messages(messages)
        self.chat_shown.emit()

    def send(self, text: str) -> bool:
        """Keeps a person's message and asks for the reply; False where it could not be kept."""
        if self.is_replying:
            return False
        message = self._tried(lambda: self._add_message(text))
        if message is None:
            return False
        self._view.add_message(message)
        self.chat_shown.emit()
        self.chats_changed.emit()
        self._begin_reply()
        return True

    def stop(self) -> None:
        """Asks the engine to end the reply; what came stays."""
        if self.is_replying:
            self._bridge.stop()

    def regenerate(self, message_id: int | None = None) -> None:
        """Writes the last reply of the chat shown again."""
        message_id = self._view.last_reply_id() if message_id is None else message_id
        if self.is_replying or self.chat_id is None or message_id is None:
            return
        chat_id = self.chat_id
        if self._done(lambda: self._store.delete_messages_from(chat_id, message_id)):
            self._view.remove_from(message_id)
            self._begin_reply()

    def rename_chat(self, chat_id: int, title: str) -> None:
        self._done(lambda: self._store.rename_chat(chat_id, title))
        self.chats_changed.emit()

    def delete_chat(self, chat_id: int) -> None:
        """Deletes a chat; a reply that is being written in it is stopped and dropped."""
        if not self._done(lambda: self._store.delete_chat(chat_id)):
            return
        if self._reply is not None and self._reply.message.chat_id == chat_id:
            self._bridge.stop()
        if chat_id == self.chat_id:
            self.new_chat()
        self.chats_changed.emit()

    def save_running_reply(self) -> None:
        """At closing: keeps what there is of the reply, marked as stopped."""
        if self._reply is not None:
            self._finish("stopped")

    def _add_message(self, text: str) -> StoredMessage:
        if self.chat_id is not None:
            return self._store.add_message(self.chat_id, "user", text)
        chat, message = self._store.add_chat(text)
        self.chat_id = chat.id
        return message

    def _begin_reply(self) -> None:
        chat_id = self.chat_id
        assert chat_id is not None
        settings = self._reply_settings()
        info = self._bridge.info
        name = info.path.stem if info is not None else ""

        def prepare() -> tuple[ChatRequest, StoredMessage]:
            turns = turns_of(self._store.messages(chat_id), settings.system_prompt)
            request = ChatRequest(turns, settings.sampling, settings.max_tokens)
            return request, self._store.add_message(chat_id, "assistant", "", "partial", name)

        prepared = self._tried(prepare)
        if prepared is None:
            return
        request, message = prepared
        self._reply = _Reply(message)
        self._view.begin_reply(message)
        self._journal_timer.start()
        self.replying_changed.emit(True)
        self._bridge.chat(request)

    def _on_text(self, text: str) -> None:
        reply = self._reply
        if reply is None or not text:
            return
        reply.pieces.append(text)
        if reply.message.chat_id == self.chat_id:
            self._view.append_to_reply(text)

    def _on_trimmed(self, count: int) -> None:
        if self._reply is not None:
            text = self.tr("The context was full: the {count} oldest messages were left out.")
            self._reply.note = text.format(count=count)

    def _on_finished(self, record: Finished) -> None:
        self._on_text(record.tail)
        if self._reply is not None and record.reason in ("length", "context"):
            reasons = {
                "length": self.tr("The longest reply allowed was reached."),
                "context": self.tr("The context is full."),
            }
            self._reply.note = f"{self._reply.note} {reasons[record.reason]}".strip()
        self._finish("stopped" if record.reason == "cancelled" else "complete")
        self.reply_finished.emit(record)

    def _on_reply_failed(self, error: CauserieError) -> None:
        self._finish("error")
        self.failed.emit(error)

    def _on_reply_cancelled(self) -> None:
        self._finish("stopped")

    def _finish(self, state: State) -> None:
        reply, self._reply = self._reply, None
        self._journal_timer.stop()
        if reply is None:
            return
        text = reply.text
        self._done(lambda: self._store.finish(reply.message.id, text, state))
        if reply.message.chat_id == self.chat_id:
            self._view.end_reply(state, reply.note)
        self.replying_changed.emit(False)

    def _journal(self) -> None:
        reply = self._reply
        if reply is None or reply.saved == len(reply.pieces):
            return
        count = len(reply.pieces)
        try:
            self._store.journal(reply.message.id, reply.text)
            reply.saved = count
        except CauserieError as error:
            log.warning("the reply could not be journaled: %s", error)  # its end will say so aloud

    def _done(self, action: Callable[[], None]) -> bool:
        """Does it; where that fails, says so and gives False."""
        try:
            action()
        except CauserieError as error:
            self.failed.emit(error)
            return False
        return True

    def _tried(self, action: Callable[[], T]) -> T | None:
        """What it gives; None where it fails, which is said."""
        try:
            return action()
        except CauserieError as error:
            self.failed.emit(error)
        return None


def turns_of(messages: list[StoredMessage], system_prompt: str) -> tuple[Message, ...]:
    """The conversation as the model is told it.

    Empty replies are left out, and two messages of one role in a row become one: templates want turns.
    A question whose reply failed is left out as well: were it what made it fail, such as by its length, no
    later message could ever be answered.
    """
    turns: list[Message] = []
    if system_prompt.strip():
        turns.append(Message("system", system_prompt))
    for message in messages:
        if not message.content.strip():
            if message.state == "error" and turns and turns[-1].role == "user":
                turns.pop()
            continue
        if turns and turns[-1].role == message.role:
            turns[-1] = Message(message.role, f"{turns[-1].content}\n\n{message.content}")
        else:
            turns.append(Message(message.role, message.content))
    return tuple(turns)
