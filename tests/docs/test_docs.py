"""The documentation says what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from olr_pg.applier.target.blockers import session_words
from olr_pg.errors import Code, OlrPgError
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from tests.server.test_listener import MemorySource, commit_scn_of
from tools.reference import DOCS, PAGES

ROOT = DOCS.parent


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    page: Callable[[], str] = PAGES[name]
    written = (DOCS / name).read_text("utf-8")
    assert written == page(), "run: uv run python tools/reference.py"


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.name
)
def test_no_heading_was_wrapped_into_the_paragraph_before_it(page: Path) -> None:
    text = re.sub(r"^```.*?^ *```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^.*\S +#{2,6}$|^.*\S +#{2,6} [A-Z].*$", text, re.MULTILINE) == []


def test_every_metric_of_the_guide_exists() -> None:
    guide = (DOCS / "operations.md").read_text("utf-8")
    source = (ROOT / "olr_pg" / "monitor" / "metrics.py").read_text("utf-8")
    for name in re.findall(r"`olr_pg_(\w+)`", guide):
        assert f'"{name.removesuffix("_total")}"' in source, name


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=str)
def test_named_tests_are_there(page: Path) -> None:
    for name in re.findall(r"`([\w/]+/test_\w+\.py)`", page.read_text("utf-8")):
        assert (ROOT / "tests" / name.removeprefix("tests/")).exists(), name


def test_the_example_of_a_blocked_statement_is_what_the_program_prints() -> None:
    row = SimpleNamespace(
        pid=4711, application_name="night job", usename="app", state="idle in transaction"
    )
    row.query, row.seconds = "LOCK TABLE shop.orders", 723.0
    reason = OlrPgError(Code.STATEMENT_BLOCKED, f"blocked by {session_words(row)}")
    guide = (DOCS / "operations.md").read_text("utf-8")
    assert f"SHOP.ORDERS: {reason}" in " ".join(guide.split())


def example(folder: Path) -> Path:
    (code,) = re.findall(
        r"```python\n(.*?)```", (DOCS / "protocol.md").read_text("utf-8"), re.DOTALL
    )
    path = folder / "client.py"
    path.write_text(code)
    return path


def test_the_example_client(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint.json", "test")
    with Listener(MemorySource(30), checkpoint) as server:
        host, port = server.address

        def run(query: str, transactions: int) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, example(tmp_path), host, str(port), query, str(transactions)],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )

        first = run("select owner, table_name from t", 10)
        assert (first.returncode, first.stderr) == (0, "")
        assert first.stdout.splitlines() == [
            f"{commit_scn_of(number)} {number:016x} I S.T" for number in range(10)
        ]
        # A restart gets all that was not confirmed, and some that was: what began later.
        second = run("select owner, table_name from t", 18)
        numbers = [int(line.split()[1], 16) for line in second.stdout.splitlines()]
        assert numbers == sorted(set(numbers))
        assert 0 < numbers[0] <= 9
        assert set(range(10, numbers[-1])) <= set(numbers)
        refused = run("select from nowhere", 1)
        assert refused.returncode == 1
        assert refused.stderr.startswith("OLR-04019")
