"""The bundled applier comes back after another client, and finds DDL that is recorded already.

Whatever part of the DDL the other run has read, the same tables are replicated in the end, and the
same events come to the applier, as where the applier has read all of it.
"""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from olr_pg.appliance.created_tables import FILE_NAME, CreatedTables, GrownDatabase
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.filters import NO_FILTERS
from olr_pg.ordering.table_events import checked_halves
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding
from tests.replicator.ddl_source import NUMBER, DdlSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from olr_pg.applier.session.handover import Created
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Snapshot

PATTERN = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE OWNER = 'SHOP'"


def made_renamed_dropped(source: DdlSource) -> None:
    source.make("L", {"ID": NUMBER})
    source.rename("L", "M")
    source.drop("M")
    source.make("L", {"ID": NUMBER, "V": NUMBER})


def made_dropped_made(source: DdlSource) -> None:
    source.make("L", {"ID": NUMBER})
    source.drop("L")
    source.make("L", {"ID": NUMBER, "V": NUMBER})
    source.rename("L", "M")
    source.rename_column("M", 0, "KEY")


def made_altered_dropped_made(source: DdlSource) -> None:
    """What comes later changes what the first table left behind."""
    source.make("L", {"ID": NUMBER, "V": NUMBER, "W": NUMBER})
    source.set_unused("L", 1)
    source.rename_column("L", 2, "X")
    source.drop("L")
    source.make("L", {"ID": NUMBER, "W": NUMBER})
    source.drop("L")
    source.make("L", {"ID": NUMBER, "V": NUMBER})


def swapped(source: DdlSource) -> None:
    source.make("L", {"ID": NUMBER})
    source.rename("A", "TMP")
    source.rename("L", "A")
    source.rename("TMP", "L")
    source.drop("L")


def redefined(source: DdlSource) -> None:
    source.make("L", {"ID": NUMBER, "V": NUMBER})
    source.swap("A", "L")
    source.rename_column("A", 1, "W")
    source.drop("L")
    source.make("L", {"ID": NUMBER, "X": NUMBER})
    source.swap("L", "A")


def name_taken_by_another(source: DdlSource) -> None:
    source.make("L", {"ID": NUMBER})
    source.drop("L")
    source.rename("A", "L")
    source.make("A", {"ID": NUMBER})
    source.drop("L")
    source.rename("A", "L")


HISTORIES = (
    *(made_renamed_dropped, made_dropped_made, made_altered_dropped_made, swapped),
    *(redefined, name_taken_by_another),
)


def come_back(
    folder: Path, snapshot: Snapshot, ddl: Sequence[DictionaryTransaction], recorded: int
) -> tuple[dict[str, Created], dict[tuple[str, int], str], dict[str, list[str]]]:
    """Replicate with the bundled applier, where some of the DDL is recorded.

    Returns:
        The tables that came in, what each event says when the applier gets it first, and the
        columns with which the applier makes each table.
    """
    created = CreatedTables(folder / f"{recorded}-{FILE_NAME}")
    history, rest = list(ddl[:recorded]), list(ddl[recorded:])
    told: dict[tuple[str, int], str] = {}
    columns: dict[str, list[str]] = {}

    def follow(of: Snapshot, take: Any = created.take) -> DictionaryFollower:
        follower = DictionaryFollower(of, take=take)
        follower.apply(tuple(history))
        return follower

    def resolve(_sql: str, _is_abandoned: Any = None) -> Any:
        return snapshot, [one for one in snapshot.tables if one.owner == "SHOP"]

    database = GrownDatabase(
        cast("Any", SimpleNamespace(resolve=resolve)), NO_FILTERS, created, follow
    )
    while True:
        known = created.known
        grown, tables = database.resolve(PATTERN)
        for one in database.as_begun(tables):
            columns.setdefault(one.full_name, [column.name for column in one.columns])
        follower = follow(grown)
        follower.subscribe(tables, wanted=lambda owner, _: owner == "SHOP")

        def publish(follower: DictionaryFollower = follower) -> None:
            for event in follower.events:
                if event.table in follower.names:
                    checked = checked_halves(event, follower.replicated.__contains__)
                    says = str(checked.evolution.error or checked.evolution)
                    told.setdefault((event.table, event.commit_scn), says)

        publish()
        while rest and created.known == known:
            history.append(rest.pop(0))
            follower.apply(history[-1:])
            publish()
        if created.known == known:
            return dict(known), told, columns


def made_columns(ddl: Sequence[DictionaryTransaction], name: str, scn: int) -> list[str]:
    """The columns that the statement that commits at an SCN gives to a table, by the redo."""
    (transaction,) = (one for one in ddl if one.commit_scn == scn)
    assert [f"SHOP.{one.name}" for one in transaction.statements] == [name]
    rows = [one.values for one in transaction.changes if one.table == "COL$"]
    return [(row["NAME"] or b"").decode() for row in rows]


@pytest.mark.parametrize("is_noted", [False, True])
@pytest.mark.parametrize("purges", [True, False])
@pytest.mark.parametrize("made", HISTORIES)
def test_the_part_of_the_ddl_that_another_run_has_read_makes_no_difference(
    tmp_path: Path, made: Callable[[DdlSource], None], purges: bool, is_noted: bool
) -> None:
    """With `is_noted`, somebody has restored older files, but the file of the new tables is from a
    run that has read all of the DDL.
    """
    source = DdlSource(tmp_path / "s")
    source.purges = purges
    source.create("A", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    made(source)
    source.finish()
    ddl: list[DictionaryTransaction] = []
    for _ in LogDecoding(snapshot, [str(source.directory / "logs")]).runs(
        DecodingOptions(ddl=ddl.append)
    ):
        pass
    tables, events, _ = come_back(tmp_path, snapshot, ddl, 0)
    assert "SHOP.L" in tables
    assert not [says for says in events.values() if "OLR-" in says]
    for recorded in range(1, len(ddl) + 1):
        if is_noted:
            shutil.copy(tmp_path / f"0-{FILE_NAME}", tmp_path / f"{recorded}-{FILE_NAME}")
        later, came, columns = come_back(tmp_path, snapshot, ddl, recorded)
        for name, begun in later.items():
            if not begun.is_renamed:
                assert columns[name] == made_columns(ddl, name, begun.scn)
        assert later.keys() == tables.keys()
        # A table that was dropped before anybody could take it need not be there in between.
        assert all(later[name].scn >= tables[name].scn for name in tables)

        def kept(events: dict[tuple[str, int], str], of: dict[str, Created] = later) -> Any:
            """The events behind the begin of a table: the applier skips the others."""
            begun = {name: one.scn for name, one in of.items()}
            return {key: says for key, says in events.items() if key[1] > begun.get(key[0], 0)}

        assert kept(came) == kept(events)
