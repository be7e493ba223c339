"""The window as a whole: names for those who cannot see it, keys for those without a mouse, dropped files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.chats.store import ChatStore
from app.errors import DownloadError
from app.library.download import DownloadProgress
from app.ui.model_picker import ModelPicker
from app.ui.theme import DARK, LIGHT, Theme, ThemeKeeper, contrast_theme
from engine.errors import Cancelled
from engine.requests import LoadSettings
from tests.app.ui.conftest import Bench

OpenBench = Callable[..., Bench]

INTERACTIVE = (
    QAbstractButton, QAbstractItemView, QAbstractSpinBox, QLineEdit, QPlainTextEdit, QTextEdit, QProgressBar,
)  # fmt: skip


def interactive_widgets(root: QWidget) -> list[QWidget]:
    """Those of ours: not the parts that Qt builds spin boxes and scroll areas from."""
    found = [child for child in root.findChildren(QWidget) if isinstance(child, INTERACTIVE)]
    return [child for child in found if not child.objectName().startswith("qt_")]


def test_every_control_has_an_accessible_name(bench: Bench) -> None:
    nameless = [
        f"{type(widget).__name__} {widget.objectName()}"
        for widget in interactive_widgets(bench.window)
        if not widget.accessibleName()
    ]
    assert nameless == []
    assert len(interactive_widgets(bench.window)) > 15


def test_every_control_can_be_reached_by_keyboard(bench: Bench) -> None:
    unreachable = [
        widget.accessibleName()
        for widget in interactive_widgets(bench.window)
        if not isinstance(widget, QProgressBar) and not widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    ]
    assert unreachable == []


def test_every_action_has_a_key_of_its_own(bench: Bench) -> None:
    keys = [action.shortcut().toString() for action in bench.window.actions()]
    assert all(keys)
    assert len(keys) == len(set(keys)) >= 10


@pytest.mark.parametrize("replying", [False, True])
def test_no_two_mnemonics_of_the_window_collide(bench: Bench, replying: bool) -> None:
    bench.window.settings_button.click()
    bench.window.panel.reload_button.show()
    bench.window.work_bar.show_progress("Loading", 0.5)
    bench.window.add_notice("Notice")
    bench.window.prompt.set_replying(replying)
    texts = [
        widget.text() for widget in bench.window.findChildren(QWidget)
        if hasattr(widget, "text") and callable(widget.text) and widget.isVisible()
        and "&" in widget.text() and not isinstance(widget, QPlainTextEdit)
    ]  # fmt: skip
    letters = [text[text.index("&") + 1].lower() for text in texts]
    assert sorted(letters) == sorted(set(letters)), texts


def drop(bench: Bench, *files: str) -> bool:
    data = QMimeData()
    data.setUrls([QUrl(file) if "://" in file else QUrl.fromLocalFile(file) for file in files])
    action, buttons, keys = (
        Qt.DropAction.CopyAction,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    place = QPointF(300, 300)
    enter = QDragEnterEvent(place.toPoint(), action, data, buttons, keys)
    enter.ignore()
    QApplication.sendEvent(bench.window, enter)
    if enter.isAccepted():
        QApplication.sendEvent(bench.window, QDropEvent(place, action, data, buttons, keys))
    return enter.isAccepted()


@pytest.mark.parametrize("name", ["model.gguf", "Žluťák 例え\u3000%20#&'.gguf", "UPPER.GGUF"])
def test_a_model_file_that_is_dropped_is_loaded(qtbot: QtBot, open_bench: OpenBench, name: str) -> None:
    bench = open_bench(model=False)
    assert drop(bench, f"/some folder/{name}")
    qtbot.waitUntil(lambda: bench.window.bridge.info is not None)
    assert bench.worker.requests == [Path(f"/some folder/{name}")]


@pytest.mark.parametrize("file", ["/x/picture.png", "http://example.org/x.gguf"])
def test_other_things_cannot_be_dropped(open_bench: OpenBench, file: str) -> None:
    bench = open_bench(model=False)
    assert not drop(bench, file)
    assert bench.worker.requests == []


def test_settings_changed_in_the_panel_are_saved(qtbot: QtBot, bench: Bench) -> None:
    from app.settings import load

    panel = bench.window.panel
    panel.findChild(QWidget, "temperature").setValue(1.25)  # type: ignore[union-attr]
    panel.findChild(QWidget, "max_tokens").setValue(99)  # type: ignore[union-attr]
    panel.system_prompt.setPlainText("Ünï <b>")
    qtbot.waitUntil(lambda: load().system_prompt == "Ünï <b>")
    assert (load().temperature, load().max_tokens) == (1.25, 99)
    panel.findChild(QWidget, "max_tokens").setValue(0)  # type: ignore[union-attr]
    qtbot.waitUntil(lambda: load().max_tokens is None)


def test_a_new_context_size_offers_to_load_again_and_does(qtbot: QtBot, bench: Bench) -> None:
    panel = bench.window.panel
    assert panel.reload_button.isHidden()
    panel.findChild(QWidget, "context_size").setValue(1024)  # type: ignore[union-attr]
    assert not panel.reload_button.isHidden()
    panel.reload_button.click()
    qtbot.waitUntil(lambda: bench.window.bridge.info.context_size == 1024)  # type: ignore[union-attr]
    assert panel.reload_button.isHidden()
    assert bench.window.status.context.text() == "Context: 0 of 1,024 tokens"


def test_saving_memory_is_offered_and_remembered(qtbot: QtBot, bench: Bench) -> None:
    from app.settings import load

    panel = bench.window.panel
    assert panel.load_settings() == LoadSettings()
    panel.findChild(QCheckBox, "weights_in_place").click()  # type: ignore[union-attr]
    assert not panel.reload_button.isHidden()
    assert panel.load_settings() == LoadSettings(repack=False)
    qtbot.waitUntil(lambda: load().weights_in_place)


def test_a_context_in_eight_bits_is_offered_and_remembered(qtbot: QtBot, bench: Bench) -> None:
    from app.settings import load

    panel = bench.window.panel
    assert panel.load_settings().kv == "f16"
    panel.findChild(QCheckBox, "eight_bit_context").click()  # type: ignore[union-attr]
    assert not panel.reload_button.isHidden()
    assert panel.load_settings().kv == "q8"
    qtbot.waitUntil(lambda: load().eight_bit_context)
    panel.findChild(QCheckBox, "eight_bit_context").click()  # type: ignore[union-attr]
    assert panel.reload_button.isHidden()


def test_a_notice_stays_until_it_is_put_away(bench: Bench) -> None:
    bench.window.add_notice("Something <b>odd</b>.")
    bench.window.add_notice("Something <b>odd</b>.")
    assert bench.window.notices.label.text() == "Something <b>odd</b>."
    assert bench.window.notices.label.textFormat() == Qt.TextFormat.PlainText
    bench.window.notices.close_button.click()
    assert bench.window.notices.isHidden()


def test_labels_never_guess_that_foreign_text_is_html(bench: Bench) -> None:
    window = bench.window
    for label in (window.work_bar.label, window.notices.label, window.status.activity, window.picker.note,
                  window.empty_page.text):  # fmt: skip
        assert label.textFormat() == Qt.TextFormat.PlainText


def test_qt_does_not_lose_references_to_none(qapp: QApplication) -> None:
    widget = QWidget()
    before = sys.getrefcount(None)
    for _ in range(1_000):
        widget.setObjectName("x")
    after = sys.getrefcount(None)
    assert abs(after - before) < 500  # the broken versions lose one with each call


def luminance(colour: str) -> float:
    def linear(part: float) -> float:
        return part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4

    made = QColor(colour)
    return 0.2126 * linear(made.redF()) + 0.7152 * linear(made.greenF()) + 0.0722 * linear(made.blueF())


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2: 1 to 21."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_can_be_read_on_every_background(theme: Theme) -> None:
    texts = [theme.text, theme.muted, theme.link, theme.accent, theme.danger]
    pairs = [(text, back) for text in texts for back in (theme.canvas, theme.panel, theme.card)]
    pairs += [(colour, theme.code_background) for colour in theme.code.values()]
    pairs.append((theme.on_accent, theme.accent))
    too_weak = [(one, other) for one, other in pairs if contrast(one, other) < 4.5]
    assert too_weak == []


def test_high_contrast_uses_the_system_s_colours_alone() -> None:
    palette = QPalette()
    palette.setColor(QPalette.ColorRole.Base, QColor("#000000"))
    palette.setColor(QPalette.ColorRole.Text, QColor("#ffffff"))
    theme = contrast_theme(palette)
    assert {theme.canvas, theme.panel, theme.card, theme.code_background} == {"#000000"}
    assert {theme.text, theme.muted, theme.border, *theme.code.values()} == {"#ffffff"}


def test_it_follows_the_system_between_light_and_dark(
    bench: Bench, themes: ThemeKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def background() -> str:
        return bench.window.grab().toImage().pixelColor(400, 200).name()

    assert background() == LIGHT.canvas
    monkeypatch.setattr(themes, "system_is_dark", lambda: True)
    themes._apply()
    assert background() == DARK.canvas
    monkeypatch.undo()
    themes._apply()
    assert background() == LIGHT.canvas


def test_the_picker_lists_models_and_offers_the_starter_when_there_is_none(
    qtbot: QtBot, tmp_path: Path
) -> None:
    from app.library.model_facts import Memory, ModelFacts

    good = ModelFacts(tmp_path / "a.gguf", 98_000_000, "Nice <b>model</b>", "llama", main_type="Q4_1",
                      memory=Memory(4096, 98_000_000, 94_000_000, 8_000_000, 0, 60_000_000))  # fmt: skip
    bad = ModelFacts(tmp_path / "b.gguf", 5, problem="b.gguf is cut short.")
    found: list[ModelFacts] = []
    picker = ModelPicker(lister=lambda _folders, _context: list(found))
    qtbot.addWidget(picker)
    picker.show_models((), LoadSettings())
    qtbot.waitUntil(lambda: picker.starter_button.isVisible())
    with qtbot.waitSignal(picker.starter_wanted):
        picker.starter_button.click()
    found += [bad, good]
    picker.show_models((), LoadSettings())
    qtbot.waitUntil(lambda: picker.list.count() == 2)
    assert not picker.starter_button.isVisible()
    assert picker.list.item(1).text() == "b\nb.gguf is cut short."
    text = picker.list.item(0).text()
    assert text.startswith("a\nNice <b>model</b>  ·  llama  ·  98 MB  ·  Q4_1  ·  needs 200 MB, ")
    assert text.endswith(" free")
    assert picker.list.currentRow() == 0
    picker.list.setCurrentRow(1)
    assert not picker.load_button.isEnabled()
    picker.list.setCurrentRow(0)
    with qtbot.waitSignal(picker.chosen) as caught:
        picker.load_button.click()
    assert caught.args == [good.path]


def test_the_starter_is_offered_where_it_is_missing(open_bench: OpenBench, causerie_home: Path) -> None:
    from app import paths

    bench = open_bench(model=False)
    button = bench.window.empty_page.starter_button
    assert button.text() == "&Get the starter model (98.4 MB)"
    assert button.isVisible()
    paths.models_folder().mkdir(parents=True)
    (paths.models_folder() / "SmolLM2-135M-Instruct.Q4_1.gguf").touch()
    bench.window._show_model()
    assert not button.isVisible()


def test_a_fetched_starter_is_loaded(qtbot: QtBot, open_bench: OpenBench) -> None:
    bench = open_bench(model=False)

    def fetch(report: Callable[[object], None], _should_stop: object) -> Path:
        report(DownloadProgress("somewhere", 50, 100, 3.0))
        return Path("starter.gguf")

    bench.window.models._fetch = fetch
    bench.window.empty_page.starter_button.click()
    assert not bench.window.work_bar.isHidden()
    qtbot.waitUntil(lambda: bench.window.bridge.info is not None)
    assert bench.worker.requests == [Path("starter.gguf")]


def test_a_fetch_that_fails_is_told_and_one_that_is_cancelled_is_not(
    qtbot: QtBot, open_bench: OpenBench
) -> None:
    bench = open_bench(model=False)

    def fail(_report: object, _should_stop: object) -> Path:
        raise DownloadError("There is no network.")

    def wait(_report: object, should_stop: Callable[[], bool]) -> Path:
        while not should_stop():
            time.sleep(0.01)
        raise Cancelled("The download was cancelled.")

    bench.window.models._fetch = fail
    bench.window.models.get_starter()
    qtbot.waitUntil(lambda: not bench.window.models.is_busy)
    assert [error.title for error in bench.errors] == ["There is no network."]
    bench.window.models._fetch = wait
    bench.window.models.get_starter()
    bench.window.work_bar.cancel_button.click()
    qtbot.waitUntil(lambda: not bench.window.models.is_busy)
    assert len(bench.errors) == 1
    assert bench.window.work_bar.isHidden()


def test_chats_can_be_used_while_a_model_takes_long_to_load(
    qtbot: QtBot, open_bench: OpenBench, store: ChatStore
) -> None:
    for title in ("one", "two"):
        store.add_chat(title)
    bench = open_bench(model=False, pause=0.5)
    bench.window.load_model(Path("slow.gguf"))
    began = time.monotonic()
    bench.window.chat_list.list.setCurrentRow(0)
    assert "two" in bench.shown()
    chat_id = bench.window.chats.chat_id
    assert chat_id is not None
    bench.window.chats.delete_chat(chat_id)
    bench.window.chats.new_chat()
    bench.window.models.cancel()
    assert time.monotonic() - began < 0.4  # none of it waited for the loader
    assert [chat.title for chat in store.chats()] == ["one"]
    qtbot.waitUntil(lambda: not bench.window.models.is_busy)
    assert bench.window.bridge.info is None


def test_every_control_of_the_picker_has_a_name(qtbot: QtBot) -> None:
    picker = ModelPicker(lister=lambda _folders, _context: [])
    qtbot.addWidget(picker)
    assert [w for w in interactive_widgets(picker) if not w.accessibleName()] == []
