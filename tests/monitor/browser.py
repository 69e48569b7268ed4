"""A headless Chromium, spoken to over its debugging pipe: no driver, no port."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 60.0
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1240,1400",
    "--remote-debugging-pipe",
)


# Puts the ends of the pipes where the browser looks for them.
_LAUNCH = (
    "import os, sys; commands, answers = map(int, sys.argv[1:3]);"
    "os.dup2(commands, 100); os.dup2(answers, 101);"
    "os.dup2(100, 3); os.dup2(101, 4); os.execv(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """One page of a browser; a context manager of its life.

    Chromium reads commands on descriptor 3 and answers on 4, JSON objects that a zero byte ends.
    """

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        arguments = [CHROMIUM, *_FLAGS, f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(commands), str(answers), *arguments],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._number = 0
        self._received = b""
        self._session: str | None = None
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._call("Emulation.setScrollbarsHidden", hidden=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            while b"\0" not in self._received:
                part = os.read(self._read, 1 << 20)
                assert part, "the browser has ended"
                self._received += part
            message, _, self._received = self._received.partition(b"\0")
            answer: dict[str, Any] = json.loads(message)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, url: str) -> None:
        self._call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def text(self, element: str) -> str:
        return str(self.evaluate(f"document.getElementById('{element}')?.innerText ?? ''"))

    def await_text(self, element: str, expected: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while expected not in (text := self.text(element)):
            assert time.monotonic() < deadline, f"{element} says {text!r}, not {expected!r}"
            time.sleep(0.05)
        return text

    def scheme(self, name: str) -> None:
        """``light`` or ``dark``, as a person's system has it."""
        scheme = {"name": "prefers-color-scheme", "value": name}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def wide(self, width: int = 1300) -> None:
        """As wide as a window on a desk."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def narrow(self) -> None:
        """As wide as a telephone."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=390, height=800, deviceScaleFactor=1, mobile=True,
        )  # fmt: skip

    def screenshot(self, path: Path, height: int | None = None) -> None:
        """The whole page, however long it is, or its upper part of some height."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        height = height or size["height"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1}
        shot = self._call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))
