"""The workflows run no code that somebody else can exchange."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

WORKFLOWS: Final = sorted((Path(__file__).parents[2] / ".github" / "workflows").glob("*.yml"))


def test_actions_are_named_by_their_commits() -> None:
    """A tag can be moved to other code; the digest of a commit cannot."""
    used = [
        action
        for path in WORKFLOWS
        for action in re.findall(r"^\s*(?:- )?uses: *(.*)$", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[0-9.]+", action), action


def test_jobs_may_only_read_the_repository() -> None:
    for path in WORKFLOWS:
        text = path.read_text("utf-8")
        assert re.findall(r"^permissions:\n((?:  .*\n)+)", text, re.MULTILINE) == [
            "  contents: read\n"
        ]
        assert "pull_request_target" not in text
        assert "secrets." not in text
