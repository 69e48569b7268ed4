"""A few targets that a DBA changes without olr_pg, and the list of what a DBA can do."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from olr_pg.postgres import embedded
from tests.appliance.changed_targets import in_this_process, live_seed
from tests.appliance.restored_targets import PROGRAMS
from tests.appliance.target_acts import ACTS, LEFT_OUT_FORMS, forms_of, left_out
from tests.postgres.own_cluster import own_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.postgres.embedded import EmbeddedPostgres


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedPostgres]:
    """A cluster whose settings and roles may change."""
    with own_cluster("fsync = off", "max_prepared_transactions = 5") as made:
        yield made


def _help(cluster: EmbeddedPostgres, command: str) -> str:
    program = embedded.packaged_installation() / "bin" / "psql"
    words = [str(program), "-X", "-P", "pager=off", cluster.connect_string, "-c", command]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_each_form_of_postgresqls_commands_is_drawn_or_has_its_reason(
    cluster: EmbeddedPostgres,
) -> None:
    lines = _help(cluster, "\\h").splitlines()[1:]
    at = lines[0].rstrip().rindex("  ") + 2  # where the second column begins
    commands = {word for line in lines for word in (line[:at].strip(), line[at:].strip()) if word}
    assert len(commands) > 150
    assert sorted(commands - ACTS.keys() - left_out() - {"ALTER TABLE"}) == []
    assert sorted(left_out() & ACTS.keys()) == []
    forms = {f"ALTER TABLE {form}" for form in forms_of(_help(cluster, "\\h ALTER TABLE"))}
    assert len(forms) > 50
    assert sorted(forms - ACTS.keys() - LEFT_OUT_FORMS) == []


def test_each_program_of_postgresqls_is_drawn_or_has_its_reason() -> None:
    programs = {one.name for one in (embedded.packaged_installation() / "bin").iterdir()}
    assert sorted(programs ^ PROGRAMS.keys()) == []


@pytest.mark.parametrize("seed", [0])
def test_no_change_of_the_source_is_lost_silently(
    cluster: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    in_this_process(monkeypatch)
    live_seed(seed, cluster)
