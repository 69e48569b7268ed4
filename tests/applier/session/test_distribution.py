"""Changes and events go to the workers in one order; lost values with their transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.applier.session.reception import Distribution
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from olr_pg.transactions.schema_event import SchemaEvent
from tests.applier.conftest import Replication

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.applier.statements.table_changes import Selection


class Workers:
    """Notes what is handed out: table, commit SCNs and columns whose values are lost."""

    def __init__(self) -> None:
        self.handed: list[Any] = []
        self.goes_on = True

    def deliver(self, table: str, selection: Selection) -> None:
        lost = [one.column for marks in selection.marked().values() for one in marks.after]
        self.handed.append((table, selection.commit_scn.tolist(), lost))

    def of(self, table: str) -> Workers:
        del table
        return self

    def finish(self) -> bool:
        self.handed.append("finished")
        return self.goes_on

    def deliver_event(self, event: SchemaEvent) -> None:
        self.handed.append((event.table, event.commit_scn, "event"))


def ddl(scn: int, table: str = "S.T") -> SchemaEvent:
    return SchemaEvent(table, scn, 1, scn - 5, Evolution(), None)


def lost(scn: int, xid: int, table: str = "S.T") -> SchemaEvent:
    value = LostLob("BODY", 2072, "", DmlKind.INSERT, True, (0, 0, 0), ())
    return ddl(scn, table)._replace(xid=xid, lobs=(value,))


def test_a_rename_is_told_once_all_before_it_is_applied() -> None:
    workers = Workers()
    given = distribution(workers)
    renames = Evolution((Step(DdlKind.RENAME_TABLE, table="S.U"),))
    given.tell(ddl(10)._replace(evolution=renames))
    given.tell(ddl(20)._replace(evolution=renames, past=True))
    workers.goes_on = False
    with pytest.raises(OSError, match="not all"):  # ends the session: what follows comes again
        given.tell(ddl(30)._replace(evolution=renames))
    assert workers.handed == ["finished", ("S.T", 10, "event"), ("S.T", 20, "event"), "finished"]


@pytest.fixture
def made(tmp_path: Path) -> Replication:
    """Transactions 1 to 3, which commit at 10, 20 and 30 and insert a row each into ``S.T``."""
    replication = Replication("", tmp_path)
    for number in range(1, 4):
        replication.transaction(replication.insert({"ID": number}))
    return replication


def distribution(workers: Workers) -> Distribution:
    return Distribution(workers, ("S.T",), is_stream=False)  # type: ignore[arg-type]


def test_ddl_is_told_in_its_place_and_of_known_tables_only(made: Replication) -> None:
    workers = Workers()
    hand_out = distribution(workers)
    hand_out.deliver("S.T", made.selection(0, 1))
    hand_out.tell(ddl(15))
    hand_out.tell(ddl(16, "S.OTHER"))
    hand_out.deliver("S.T", made.selection(1))
    assert workers.handed == [("S.T", [10], []), ("S.T", 15, "event"), ("S.T", [20, 30], [])]


def test_lost_values_go_in_with_their_transaction(made: Replication) -> None:
    workers = Workers()
    hand_out = distribution(workers)
    hand_out.tell(lost(20, 2))
    assert hand_out.waiting_scn == 20
    hand_out.deliver("S.T", made.selection())
    assert workers.handed == [("S.T", [10, 20, 30], ["BODY"])]
    assert hand_out.waiting_scn is None


def test_where_the_transaction_changes_nothing_else_they_go_in_between(made: Replication) -> None:
    workers = Workers()
    hand_out = distribution(workers)
    hand_out.tell(lost(20, 99))
    hand_out.deliver("S.T", made.selection())
    assert workers.handed == [("S.T", [10, 20], []), ("S.T", 20, "event"), ("S.T", [30], [])]


def test_they_wait_until_what_commits_later_comes(made: Replication) -> None:
    workers = Workers()
    hand_out = distribution(workers)
    hand_out.tell(lost(20, 99))
    hand_out.deliver("S.T", made.selection(0, 1))
    hand_out.release(20)
    assert workers.handed == [("S.T", [10], [])]
    hand_out.release(21)
    assert workers.handed[1:] == [("S.T", 20, "event")]


def test_what_comes_again_is_forgotten() -> None:
    workers = Workers()
    hand_out = distribution(workers)
    hand_out.tell(lost(20, 99))
    hand_out.forget()
    hand_out.release()
    assert workers.handed == []
