"""The archived logs of a live database, as `olr-pg logs` knows them: by Oracle's own names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.appliance.log_needs import Position, choose_needed, in_vault, known_logs
from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import Vault
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.simulation import simulate
from tests.oracle.live_source import LiveSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSource]:
    (tmp_path / "s").mkdir()
    summary = simulate(3, tmp_path / "s", workload="orders", size=200_000, shape=demo_shape())
    source = LiveSource(summary, tmp_path)
    source.archive_all()
    yield source
    source.close()


def test_they_have_the_names_that_rman_knows(live: LiveSource, tmp_path: Path) -> None:
    config = load_config(live.write_config(tmp_path, "host=127.0.0.1 port=1"))
    headers = [open_log(str(path)) for path in live.summary.logs]
    known = known_logs(config)
    assert [(one.sequence, one.next_scn) for one in known] == [
        (log.header.sequence, log.next_scn) for log in headers
    ]
    for one, path in zip(known, live.summary.logs, strict=True):
        assert one.name.endswith(path.name)
        assert one.name != one.path
        assert one.path == str(live.mount / path.name)


def test_copies_in_the_vault_are_known(live: LiveSource, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    assert in_vault(Vault(directory=vault)) == frozenset()
    with live.database(vault=vault) as database:
        database.scan(0, 0)
    known = known_logs(load_config(live.write_config(tmp_path, "host=127.0.0.1 port=1")))
    copied = in_vault(Vault(directory=vault))
    assert copied == {one.position for one in known}
    assert not any(one.needed for one in choose_needed(known, [Position("", None, "new")], copied))
    damaged = min(vault.glob("*.arc"))
    # The vault checks a copy before it gives it its name; until then it is no copy.
    damaged.rename(damaged.with_suffix(".copying"))
    assert len(in_vault(Vault(directory=vault))) == len(copied) - 1
    damaged.with_suffix(".copying").rename(damaged)
    damaged.write_bytes(damaged.read_bytes()[:-512])
    needed = choose_needed(known, [Position("", None, "new")], in_vault(Vault(directory=vault)))
    assert [one.log.sequence for one in needed if one.needed] == [known[0].sequence]
