"""The pages build into a site, without a network, and none of their links leads nowhere."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
ORDER: Final = (
    *("Try", "Plan", "Load", "Follow", "Watch", "Cut over", "When things go wrong", "Reference"),
    "Change it",
)


class Fetched(HTMLParser):
    """What a browser fetches by itself when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in {"script", "img", "iframe"} and given.get("src"):
            self.found.append(str(given["src"]))
        if tag == "link" and "stylesheet" in (given.get("rel") or ""):
            self.found.append(str(given["href"]))


def build(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    # As the page says, with no other names to look up: a builder that fetched something would fail.
    command: list[str | Path] = [
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-c",
        source / "docs",
        source,
        site,
    ]
    nowhere = {"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=nowhere
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built_and_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        built = site / page.relative_to(ROOT).with_suffix(".html")
        parser = Fetched()
        parser.feed(built.read_text("utf-8"))
        assert parser.found
        for address in parser.found:
            assert "//" not in address, (page, address)
            assert (built.parent / address.partition("?")[0]).exists(), (page, address)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", sheet.read_text("utf-8"))


def test_the_navigation_is_in_a_users_order(site: Path) -> None:
    index = (site / "docs" / "README.html").read_text("utf-8")
    captions = re.findall(r'class="caption-text">([^<]+)<', index)
    assert tuple(captions[: len(ORDER)]) == ORDER


def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "conf.py").write_text((ROOT / "docs" / "conf.py").read_text("utf-8"))
    for link, is_there in (("b.md#two", True), ("b.md#three", False), ("c.md", False)):
        (docs / "README.md").write_text(f"# A\n\n**Try.** [b](b.md)\n\n[x]({link})\n")
        (docs / "b.md").write_text("# B\n\n## Two\n")
        done = build(tmp_path, tmp_path / "site")
        assert (done.returncode == 0) == is_there, (link, done.stderr)
