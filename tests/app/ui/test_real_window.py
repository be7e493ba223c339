"""The window on a real display (a virtual one, Xvfb): it opens, takes keys, shows a reply, and closes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from app.ui.theme import LIGHT

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from pathlib import Path
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from app.ui import application
from app.ui.main_window import MainWindow
from tests.app.ui.fake_worker import FakeWorker

REPLY = "# Title\\n\\nSome **bold** text.\\n\\n```python\\ndef f(x):\\n    return x\\n```\\n\\n"
REPLY += "| a | b |\\n|---|---|\\n| 1 | 2 |\\n"
qt = QApplication([])

def window():
    return next(w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow))

def type_message():
    QTest.keyClicks(window().prompt.edit, "Hello <b>there</b>")
    QTest.keyClick(window().prompt.edit, Qt.Key.Key_Return)
    window().chats.reply_finished.connect(lambda _: QTimer.singleShot(300, look))

def look():
    # the picture of the display, not of the widget: what a person really sees
    screen = window().screen()
    assert screen.grabWindow(0).save(sys.argv[1])
    print(QApplication.platformName(), flush=True)
    window().close()

def once_loaded():
    window().resize(900, 640)
    window().models.ready.connect(lambda *_: QTimer.singleShot(100, type_message))

QTimer.singleShot(0, once_loaded)
QTimer.singleShot(20_000, lambda: qt.exit(9))
sys.exit(application.run_window(Path("m.gguf"), lambda event: FakeWorker(event, [REPLY], 0.05)))
"""


@pytest.mark.skipif(not shutil.which("xvfb-run"), reason="needs Xvfb (`dev.py test` installs it on Debian)")
def test_the_window_opens_on_a_display_and_shows_a_reply(tmp_path: Path, causerie_home: Path) -> None:
    picture = tmp_path / "window.png"
    environment = {**os.environ, "QT_QPA_PLATFORM": "xcb", "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        ["xvfb-run", "-a", "-s", "-screen 0 1000x720x24", sys.executable, "-c", PROGRAM, str(picture)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=90,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "xcb\n"
    image = QImage(str(picture))
    assert (image.width(), image.height()) == (1000, 720)
    colours = {
        image.pixelColor(x, y).name() for x in range(0, image.width(), 2) for y in range(0, image.height(), 2)
    }
    for expected in (LIGHT.canvas, LIGHT.panel, LIGHT.card, LIGHT.code_background, LIGHT.text):
        assert expected in colours
    keep = os.environ.get("CAUSERIE_KEEP_SCREENSHOTS")
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, Path(keep) / "window.png")
