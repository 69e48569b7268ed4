"""The page in a real browser, in each state: what it says, that nothing is cut, and how it looks.

The statuses were recorded from an appliance at work (`record_states`). `OLR_PG_SCREENSHOTS=FOLDER`
keeps the pictures: desktop and telephone, light and dark.
"""

from __future__ import annotations

import json
import math
import os
import random
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from olr_pg.config.address import Address
from olr_pg.fallback.fallback_run import Status as WayBack
from olr_pg.fallback.oracle_ledger import LedgerState, TableStop
from olr_pg.fallback.preparation import Slot
from olr_pg.fallback.way_back_status import Looked, Watched, WayBackStatus
from olr_pg.monitor import service as service_module
from olr_pg.monitor.history import LEVELS, WHOLE, HistoryStore, Reading
from olr_pg.monitor.metrics import make_registry
from olr_pg.monitor.problems import with_problems
from olr_pg.monitor.service import ServiceSettings, StatusService
from olr_pg.monitor.status_values import Identity, Status
from tests.monitor.browser import CHROMIUM, Browser
from tests.monitor.conftest import NOW
from tests.monitor.recorded_states import STATES, read_state

PATIENCE = 60.0
KEPT = os.environ.get("OLR_PG_SCREENSHOTS")
ANY = Address("127.0.0.1", 0)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH")


class Shown:
    """What is served; a test may change it."""

    def __init__(self, status: Status) -> None:
        self.status = status

    def __call__(self) -> Status:
        return self.status


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser") / "chromium") as one:
        yield one


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(KEPT) if KEPT else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fill(store: HistoryStore, end: float) -> None:
    """An hour of a shop, with an outage of the target, and one of the appliance."""
    chance = random.Random(7)
    level = LEVELS[0]
    for at in range(int(end) // level.step * level.step - level.span, int(end), level.step):
        if not 2_700 < end - at < 3_000:
            add(store, at, end - at, chance)


def add(store: HistoryStore, at: int, age: float, chance: random.Random) -> None:
    day = 0.55 + 0.45 * math.sin(at / 86_400 * 2 * math.pi)
    rows = 4_000 * day * chance.uniform(0.8, 1.2)
    away = 1_200 < age < 1_500
    lag = 1_500 - age if away else 0.0
    whole = Reading(
        redo_bytes=rows * 260,
        rows=rows,
        changes=0.0 if away else rows,
        reading=chance.uniform(0.1, 0.2),
        decoding=chance.uniform(0.6, 1.4),
        queue=lag * 0.7,
        apply=lag * 0.3 + chance.uniform(0.1, 0.3),
        waiting=rows * (1 if away else 0.2),
        queued_bytes=lag * 600_000 + rows * 40,
    )
    store.add(at, "", {WHOLE: whole, "SHOP.ORDERS": whole._replace(changes=whole.changes * 0.6)})


def now_told(name: str) -> Status:
    """A recorded state, with its problems as they are told now."""
    status = read_state(name, NOW)
    return with_problems(status, None, ()) if status.problems else status


def await_true(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.05)


OVERFLOWING = """[...document.querySelectorAll('body *')].filter(e =>
    !e.closest(innerWidth > 720 ? '.scroll, svg, [hidden]' : 'svg, [hidden]') &&
    e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.tagName + '#' + e.id + '.' + e.className)"""
SMALL = """[...document.querySelectorAll('svg text')].filter(e => {
    const own = e.getBoundingClientRect(), outer = e.ownerSVGElement.getBoundingClientRect();
    return own.left < outer.left - 1 || own.right > outer.right + 1; }).map(e => e.textContent)"""


@pytest.fixture(autouse=True)
def quick_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "EVENT_SECONDS", 0.05)


def test_every_state_is_readable_on_every_screen(
    browser: Browser, pictures: Path, tmp_path: Path
) -> None:
    shown = Shown(read_state(STATES[0], NOW))
    store = HistoryStore(tmp_path / "history.sqlite")
    fill(store, NOW)
    with StatusService(
        {"": shown}, make_registry(shown), ServiceSettings(address=ANY), history=store
    ) as service:
        for is_phone in (False, True):
            if is_phone:
                browser.narrow()
            else:
                browser.wide()
            browser.open(service.url)
            for name in STATES:
                shown.status = now_told(name)
                words, code = shown.status.state.words, shown.status.state.name
                browser.await_text("code", code)
                assert browser.text("state") == words
                if code == "STARTING":  # what nobody knows is no number
                    await_true(lambda: browser.text("lag") == "unknown")
                    assert browser.text("positions").count("none yet") == 4
                await_true(lambda: browser.evaluate("document.querySelectorAll('svg').length") == 4)
                assert browser.evaluate(OVERFLOWING) == []
                assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
                small = browser.evaluate(SMALL)
                assert small == [], small
                commands = browser.evaluate(
                    "[...document.querySelectorAll('.command code')].map(e => e.textContent)"
                )
                assert commands == [one for many in shown.status.commands for one in many]
                for scheme in ("light", "dark"):
                    if scheme == ("light" if is_phone else "dark") and not KEPT:
                        continue  # each of both is looked at on one of the screens
                    browser.scheme(scheme)
                    screen = "phone" if is_phone else "desktop"
                    picture = pictures / f"{name}-{screen}-{scheme}.png"
                    browser.screenshot(picture)
                    assert picture.stat().st_size > 10_000
    store.close()


README_PICTURE = Path(__file__).parents[2] / "docs" / "images" / "status-page.png"


def size_of(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height


def test_the_picture_of_the_readme(browser: Browser, pictures: Path, tmp_path: Path) -> None:
    """`OLR_PG_SCREENSHOTS=docs/images pytest tests/monitor/test_page.py -k readme` makes it."""
    status = now_told("caught-up")
    state = replace(status.state, since=NOW - 12)
    shown = Shown(replace(status, started_at=NOW - 3 * 86_400, state=state))
    store = HistoryStore(tmp_path / "history.sqlite")
    fill(store, NOW)
    browser.wide(1100)
    browser.scheme("light")
    with StatusService(
        {"": shown}, make_registry(shown), ServiceSettings(address=ANY), history=store
    ) as service:
        browser.open(service.url)
        browser.await_text("code", "CAUGHT_UP")
        await_true(lambda: browser.evaluate("document.querySelectorAll('svg').length") == 4)
        browser.screenshot(pictures / README_PICTURE.name, 860)
    store.close()
    assert size_of(pictures / README_PICTURE.name) == size_of(README_PICTURE)


def test_what_the_page_says(browser: Browser, status: Status, tmp_path: Path) -> None:
    shown = Shown(status)
    store = HistoryStore(tmp_path / "history.sqlite")
    browser.wide()
    with StatusService(
        {"": shown}, make_registry(shown), ServiceSettings(address=ANY), history=store
    ) as service:
        browser.open(service.url)
        browser.await_text("health", "degraded")
        assert browser.text("code") == "WAITING_FOR_REDO"
        who = browser.text("who")
        for part in ("FREE, db1:1521/shop", "SHOPPDB", "pg1:5432, database shop", "replica-1"):
            assert part in who
        assert "<i>a value</i> does not fit" in browser.text("problems")
        assert "olr-pg errors show 17 --config /etc/olr-pg/x.json" in browser.text("problems")
        assert "25 %, 250,000 rows, 8,333/s, about 1 min 30 s left" in browser.text("loads")
        tables = browser.text("tables")
        assert tables.index('<b onclick="alert(1)">x') < tables.index("SHOP.ORDERS")  # stopped
        assert "7.5 s" in tables
        assert "50,000" in tables
        assert "sequence 9 is not among the logs" in browser.text("threads")
        assert "7 × OLR-04033" in browser.text("process")
        assert "230 MiB of 256 MiB" in browser.text("queue")
        events = browser.text("events")
        assert "table stopped [table: SHOP.X]" in events
        assert "connection refused: OLR-04033 (2 times)" in events
        assert browser.text("no_history") == "No history is stored yet."
        left = browser.text("left_out")
        assert [word for word in left.split() if word.isdecimal()] == ["17", "5", "3", "1"]
        assert browser.evaluate("document.title") == "olr_pg: degraded, replica-1"
        # What comes by the stream is shown, without a reload.
        shown.status = replace(status, problems=(), commands=(), loads=())
        await_true(lambda: browser.evaluate("document.getElementById('problems').hidden"))
        assert browser.evaluate("document.getElementById('loads').hidden") is True
        # History of one table, of another range.
        add(store, int(NOW) - 60, 60.0, random.Random(1))
        browser.evaluate("document.querySelector('[data-range=\"1h\"]').click()")
        await_true(lambda: browser.evaluate("document.querySelectorAll('svg').length") == 4)
        browser.evaluate(
            "[...document.querySelectorAll('#tables td.name button')]"
            ".find(b => b.textContent == 'SHOP.ORDERS').click()"
        )
        await_true(lambda: browser.evaluate("document.querySelectorAll('svg').length") == 3)
        assert "Changes applied" in browser.text("charts")
        service.stop()
        browser.await_text("health", "no answer")
    store.close()


def test_the_page_of_a_way_back(browser: Browser) -> None:
    found = Watched(Identity("replica-1", "/etc/x.json"), ("SHOP.ORDERS", "SHOP.X"), 100, "", NOW)
    stop = TableStop(0x1_0000_0000, is_stopped=True, reason="OLR-07350: <i>a value</i> is too long")
    ledger = LedgerState("slot", "1", 1, 0x2_0000_0020, 7, {"SHOP.X": stop})
    slot = Slot(0x2_0000_0010, is_active=True, wal_status="reserved", wal_bytes=16 << 20)
    answer = WayBack("begun", slot, ledger, 4096, [])

    def status() -> WayBackStatus:
        return found.status(Looked(NOW, answer), NOW, NOW)

    browser.wide()
    with StatusService({"": status}, CollectorRegistry(), ServiceSettings(address=ANY)) as service:
        browser.open(service.url)
        browser.await_text("health", "degraded")
        assert browser.text("state") == "Replicating from PostgreSQL to Oracle"
        assert "2/20" in browser.text("way_position")
        assert "16 MiB" in browser.text("way_slot")
        tables = browser.text("way_tables")
        assert tables.index("SHOP.X") < tables.index("SHOP.ORDERS")  # stopped
        assert "<i>a value</i> is too long" in tables
        assert "olr-pg fallback resume --table SHOP.X" in browser.text("problems")
        shown = "[...document.querySelectorAll('main > *')].filter(e => !e.hidden).map(e => e.id)"
        assert browser.evaluate(shown) == ["problems", "way_back", "way_tables"]


def test_recorded_states_have_what_a_status_has_now(status: Status) -> None:
    now = json.loads(json.dumps(status.as_record(), default=str))
    for name in STATES:
        recorded = json.loads(json.dumps(read_state(name).as_record(), default=str))
        assert recorded.keys() == now.keys(), "record them anew: see record_states"
