"""The chat view: streamed equals shown at once, nothing is fetched, nothing moves under the reader."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QColor, QGuiApplication, QImage, QTextCursor, QTextDocument
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chats.chat import Role, State, StoredMessage
from app.ui import chat_view
from app.ui.chat_document import ChatDocument
from app.ui.chat_view import ChatView
from app.ui.document_writer import link_address
from app.ui.theme import DARK, LIGHT
from tests.app.text.test_streamed_markdown import FRAGMENTS

HOSTILE = """
![a](file:///{path}) ![b]({path}) ![c](http://127.0.0.1/x.png) ![d](data:image/png;base64,iVBORw0KGgo=)
<img src="file://{path}"> <img src={path}> <table background="{path}"><tr><td>x</td></tr></table>
<body background="file://{path}"> <style>* {{ background: url({path}) }}</style>
[e](file://{path}) [f](javascript:alert(1)) [g](data:text/html,x) [h](//server/share/x)
[i](\\\\\\\\server\\\\share)
<a href="file://{path}">j</a> <script src="{path}"></script> <iframe src="{path}"></iframe>
[ref]: file://{path}
"""


def message(number: int, role: Role, content: str, state: State = "complete") -> StoredMessage:
    return StoredMessage(number, 1, role, content, state, "model" if role == "assistant" else "", 0.0)


@pytest.fixture
def view(qtbot: QtBot) -> Iterator[ChatView]:
    made = ChatView(LIGHT)
    qtbot.addWidget(made)
    made.resize(700, 500)
    made.show()
    yield made


def rendered(content: str) -> str:
    document = QTextDocument()
    ChatDocument(document, LIGHT).add(message(1, "assistant", content))
    return document.toHtml()


def rendered_in_pieces(content: str, cuts: random.Random) -> str:
    document = QTextDocument()
    chat = ChatDocument(document, LIGHT)
    chat.begin_reply(message(1, "assistant", ""))
    position = 0
    while position < len(content):
        step = cuts.randint(1, 12)
        chat.append(content[position : position + step])
        position += step
        if cuts.random() < 0.6:
            chat.refresh()
    chat.end_reply("complete")
    return document.toHtml()


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30), st.randoms(use_true_random=False))
def test_a_streamed_reply_looks_as_if_shown_at_once(
    qapp: QApplication, fragments: list[str], cuts: random.Random
) -> None:
    content = "".join(fragments)
    assert rendered_in_pieces(content, cuts) == rendered(content)


def test_nothing_shown_is_ever_asked_for(view: ChatView, tmp_path: Path, qtbot: QtBot) -> None:
    picture = tmp_path / "secret.png"
    red = QImage(64, 64, QImage.Format.Format_RGB32)
    red.fill(QColor("#ff0000"))
    assert red.save(str(picture))
    asked: list[str] = []

    class Recording(ChatView):
        def loadResource(self, kind: int, name: QUrl | str) -> object:
            asked.append(str(name))
            return super().loadResource(kind, name)

    recording = Recording(LIGHT)
    qtbot.addWidget(recording)
    recording.resize(900, 900)
    recording.show()
    hostile = HOSTILE.format(path=picture)
    recording.add_message(message(1, "user", hostile))
    recording.add_message(message(2, "assistant", hostile))
    recording.verticalScrollBar().setValue(0)
    grabbed = recording.grab().toImage()
    assert asked == []
    html = recording.document().toHtml()
    assert "<img" not in html
    assert "src=" not in html.replace("src=&quot;", "").replace("src=/", "").replace("src={", "")
    assert 'href="file' not in html
    assert 'href="javascript' not in html
    reds = sum(
        grabbed.pixelColor(x, y) == QColor("#ff0000")
        for x in range(0, grabbed.width(), 8)
        for y in range(0, grabbed.height(), 8)
    )
    assert reds == 0


def test_whatever_a_document_asks_for_is_answered_with_an_empty_picture(
    view: ChatView, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    for name in (QUrl.fromLocalFile(str(secret)), QUrl("http://127.0.0.1/x"), QUrl("data:,x")):
        for kind in QTextDocument.ResourceType:
            answer = view.loadResource(kind.value, name)
            assert isinstance(answer, QImage)
            assert (answer.width(), answer.height()) == (1, 1)
    # Qt itself, asked through HTML that our writer never makes, gets that picture and not the file
    view.document().setHtml(f'<img src="{QUrl.fromLocalFile(str(secret)).toString()}">')
    view.grab()


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize(
    "text",
    ["<grin> hi", "what does <topic> mean?", "a < b && c > d", "<script>x</script>", "&lt; &amp; &nbsp;",
     "Vec<T> and Map<K, V>", "<think>", "`<br>`", "```\n<br> &lt;\n```"],
)  # fmt: skip
def test_angle_brackets_are_shown_as_typed(view: ChatView, role: Role, text: str) -> None:
    view.add_message(message(1, role, text))
    expected = text
    if role == "assistant":
        expected = text.replace("```\n", "").replace("\n```", "").replace("`", "")
    assert expected in view.toPlainText()
    view.anchorClicked.emit(QUrl("action:copy/1"))
    assert QGuiApplication.clipboard().text() == text


def test_a_person_s_text_keeps_spaces_and_lines(view: ChatView) -> None:
    text = "  two\n\n\ttab   and **stars**\n# no heading\n"
    view.add_message(message(1, "user", text))
    assert text in view.toPlainText()


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ("```foo\nfoo\n```\n```\nbar\n```\n```baz```", ["foo", "bar"]),
        ("~~~\n\tx\n  y  \n~~~", ["\tx\n  y  "]),
        ("````\n```\ninner\n```\n````", ["```\ninner\n```"]),
        ("- item\n  ```py\n  a = 1\n    b\n  ```", ["a = 1\n  b"]),
        ("```py\r\na\r\n\r\nb\r\n```\r\n", ["a\n\nb"]),
        ("```\nno end", ["no end"]),
        ("> ```\n> quoted\n> ```", ["quoted"]),
        ("```html\n<b>&amp;\u00a0</b>\n```", ["<b>&amp;\u00a0</b>"]),
    ],
)
def test_copy_gives_exactly_the_code(view: ChatView, source: str, codes: list[str]) -> None:
    view.add_message(message(7, "assistant", source))
    addresses = anchors(view.document(), "action:code/")
    copied = []
    for address in addresses:
        view.anchorClicked.emit(QUrl(address))
        copied.append(QGuiApplication.clipboard().text())
    assert copied == codes


def test_open_code_can_be_copied_while_it_streams(view: ChatView) -> None:
    view.begin_reply(message(1, "assistant", "", "partial"))
    view.append_to_reply("```py\na = 1\nb")
    view._flush()
    view.append_to_reply(" = 2\n")
    view._flush()
    (address,) = anchors(view.document(), "action:code/")
    view.anchorClicked.emit(QUrl(address))
    assert QGuiApplication.clipboard().text() == "a = 1\nb = 2"
    view.end_reply("stopped")


def anchors(document: QTextDocument, beginning: str) -> list[str]:
    found = []
    block = document.begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            address = iterator.fragment().charFormat().anchorHref()
            if address.startswith(beginning) and address not in found:
                found.append(address)
            iterator += 1
        block = block.next()
    return found


def test_a_selection_is_copied_as_plain_text_with_ordinary_line_breaks(view: ChatView) -> None:
    view.add_message(message(1, "assistant", "one\ntwo\n\n- three"))
    cursor = view.textCursor()
    cursor.select(QTextCursor.SelectionType.Document)
    view.setTextCursor(cursor)
    data = view.createMimeDataFromSelection()
    assert data.formats() == ["text/plain"]
    assert "one\ntwo\nthree" in data.text()


def test_a_link_is_shown_and_asked_about_before_it_is_opened(
    view: ChatView, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    opened: list[str] = []
    answers = [False, True]

    def ask(target: str, _parent: object) -> bool:
        asked.append(target)
        return answers[len(asked) - 1]

    monkeypatch.setattr(chat_view, "ask_about_link", ask)
    monkeypatch.setattr(chat_view.QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    view.add_message(
        message(1, "assistant", "[nice](https://evil.example/%2e?a=b&c=d#e) https://plain.example")
    )
    addresses = anchors(view.document(), "link:")
    for address in addresses:
        view.anchorClicked.emit(QUrl(address))
    assert asked == ["https://evil.example/%2e?a=b&c=d#e", "https://plain.example"]
    assert opened == ["https://plain.example"]


@pytest.mark.parametrize(
    "target",
    ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "//server/share", "action:copy/1"],
)
def test_other_links_are_never_offered(view: ChatView, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr(chat_view, "ask_about_link", lambda *_: pytest.fail("was asked"))
    monkeypatch.setattr(chat_view.QDesktopServices, "openUrl", lambda _url: pytest.fail("was opened"))
    view.add_message(message(1, "assistant", f"[click]({target}) <{target}>"))
    assert anchors(view.document(), "link:") == []
    view.anchorClicked.emit(QUrl(link_address(target)))
    view.anchorClicked.emit(QUrl("link:zz"))


def test_only_the_last_reply_offers_regenerate(view: ChatView, qtbot: QtBot) -> None:
    for number in (1, 3):
        view.add_message(message(number, "user", "q"))
        view.add_message(message(number + 1, "assistant", "a"))
    assert anchors(view.document(), "action:regenerate/") == ["action:regenerate/4"]
    with qtbot.waitSignal(view.regenerate) as caught:
        view.anchorClicked.emit(QUrl("action:regenerate/4"))
    assert caught.args == [4]


def test_a_reply_that_a_crash_cut_off_is_marked(view: ChatView) -> None:
    view.show_messages([message(1, "user", "q"), message(2, "assistant", "half of", "interrupted")])
    assert "Interrupted: the program ended while this was written." in view.toPlainText()


def test_a_long_chat_opens_at_once_and_shows_earlier_messages_on_request(view: ChatView) -> None:
    messages = [message(n, "user" if n % 2 else "assistant", f"message {n}\n" * 4) for n in range(1, 10_001)]
    began = time.process_time()
    view.show_messages(messages)
    QApplication.processEvents()
    assert time.process_time() - began < 1.0
    text = view.toPlainText()
    assert "message 10000" in text
    assert "message 9000\n" not in text
    assert "Show 9960 earlier messages" in text
    view.verticalScrollBar().setValue(0)
    view.anchorClicked.emit(QUrl("action:earlier/0"))
    text = view.toPlainText()
    assert "message 9921" in text
    assert "message 10000" in text
    assert "Show 9920 earlier messages" in text


def test_other_colours_write_the_same_text_and_a_running_reply_goes_on(view: ChatView) -> None:
    view.add_message(message(1, "user", "q"))
    view.begin_reply(message(2, "assistant", "", "partial"))
    view.append_to_reply("half **bo")
    view._flush()
    before = view.toPlainText()
    view.set_theme(DARK)
    assert view.toPlainText() == before
    view.append_to_reply("ld** done")
    view.end_reply("complete")
    assert "half bold done" in view.toPlainText()
    colour = view.document().firstBlock().next().begin().fragment().charFormat().foreground().color().name()
    assert colour in (DARK.text, DARK.muted)


@pytest.mark.parametrize(
    "unit",
    ["word ", "- item\n", "x", "| a | b |\n", "paragraph\n\n", "```py\n" + "x = 1\n" * 20 + "```\n"],
    ids=["one line", "list", "no spaces", "rows", "paragraphs", "code"],
)
@pytest.mark.slow
def test_twice_the_reply_takes_at_most_two_and_a_half_times_as_long(qapp: QApplication, unit: str) -> None:
    def seconds(size: int) -> float:
        view = ChatView(LIGHT)
        view.resize(700, 500)
        view.begin_reply(message(1, "assistant", "", "partial"))
        view._timer.stop()
        began = time.process_time()
        for count in range(size // len(unit)):
            view.append_to_reply(unit)
            if count % 30 == 0:
                view._flush()
        view.end_reply("complete")
        QApplication.processEvents()
        return time.process_time() - began

    seconds(5_000)
    # 2.5 by design; the rest is for a machine that others use at the same time
    assert seconds(60_000) < 2.5 * seconds(30_000) + 0.5


@pytest.mark.parametrize(
    "content",
    ["x" * 200_000, "word " * 40_000, "```\n" + "code line\n" * 5_000, "> " * 1_000 + "deep",
     "|" + "h|" * 20 + "\n|" + "-|" * 20 + "\n" + ("|" + "c|" * 20 + "\n") * 500,
     "**" * 5_000, "- " * 500 + "x"],
    ids=["one word", "one line", "code", "quotes", "table", "stars", "nested lists"],
)  # fmt: skip
def test_monstrous_text_is_shown_soon_and_whole(view: ChatView, content: str) -> None:
    began = time.process_time()
    view.add_message(message(1, "assistant", content))
    view.grab()
    assert time.process_time() - began < 5.0
    assert len(view.toPlainText()) > 20
    view.anchorClicked.emit(QUrl("action:copy/1"))
    assert QGuiApplication.clipboard().text() == content


def test_links_can_be_reached_by_keyboard(view: ChatView) -> None:
    flags = view.textInteractionFlags()
    assert flags & Qt.TextInteractionFlag.LinksAccessibleByKeyboard
    assert flags & Qt.TextInteractionFlag.TextSelectableByMouse


@pytest.mark.parametrize("line", ["x", "", "a line of some words"])
def test_a_message_of_many_lines_is_laid_out_once(view: ChatView, line: str) -> None:
    """Were the card laid out again for each line, this would take many seconds."""
    began = time.perf_counter()
    view.add_message(message(1, "user", f"{line}\n" * 6000))
    QApplication.processEvents()
    assert time.perf_counter() - began < 2.0
    assert view.document().blockCount() > 6000
