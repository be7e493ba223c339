"""A model hub and a package index of our own, on this machine, for tests of downloads."""

from __future__ import annotations

import hashlib
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Serves one file as the hub does.

    content: its bytes.  pause: seconds between pieces of 64 KiB.  requests: "METHOD path range" of each.
    """

    def __init__(self, content: bytes, pause: float) -> None:
        self.content = content
        self.pause = pause
        self.requests: list[str] = []
        self.address = ""


@contextmanager
def running_hub(content: bytes, pause: float = 0.0) -> Iterator[Hub]:
    """The hub, until the block is left; its address belongs into HF_ENDPOINT."""
    hub = Hub(content, pause)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, with_body: bool) -> None:
            wanted = self.headers.get("Range", "")
            hub.requests.append(f"{self.command} {self.path} {wanted}")
            if "/resolve/" not in self.path:
                self.send_error(404)
                return
            start = int(wanted.removeprefix("bytes=").partition("-")[0]) if wanted else 0
            end = min(int(wanted.partition("-")[2] or len(hub.content)), len(hub.content) - 1)
            body = hub.content[start : end + 1]
            self.send_response(206 if wanted else 200)
            self.send_header("ETag", f'"{hashlib.sha256(hub.content).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(body)))
            if wanted:
                self.send_header("Content-Range", f"bytes {start}-{end}/{len(hub.content)}")
            self.end_headers()
            if not with_body:
                return
            try:
                for position in range(0, len(body), 1 << 16):
                    self.wfile.write(body[position : position + (1 << 16)])
                    time.sleep(hub.pause)
            except OSError:
                pass  # whoever asked has left

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_wheel(folder: Path, name: str, version: str, member: str, content: bytes) -> Path:
    """A wheel with one file, as pip accepts it."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = name.replace("-", "_")
    path = folder / f"{stem}-{version}-py3-none-any.whl"
    info = f"{stem}-{version}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path
