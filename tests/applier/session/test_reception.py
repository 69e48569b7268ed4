"""Elements are delivered by table once their Commit is here, however they are cut.

What the server has to keep for a client, as the client counts it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.applier.session.reception import Distribution, Reception, Unconfirmed
from olr_pg.applier.settings import ApplierSettings
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from olr_pg.transactions.schema_event import SchemaEvent
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import LastCommitedScn
from olr_pg.wire.protocol import TRANSACTION_BYTES, Elements
from tests.applier.conftest import Replication

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.applier.batches.spool import Spool
    from olr_pg.applier.statements.table_changes import Selection


class NotedDistribution:
    """Notes what it is given: (table, commit SCN of each change), and releases."""

    def __init__(self) -> None:
        self.given: list[tuple[str, list[int]]] = []
        self.spooled: list[int] = []
        self.released: list[int] = []

    def deliver(self, table: str, selection: Selection) -> None:
        self.given.append((table, selection.commit_scn.tolist()))

    def deliver_spooled(self, spool: Spool) -> None:
        self.spooled.append(spool.xid)

    def release(self, scn: int) -> None:
        self.released.append(scn)


class Client:
    """A reception, and the messages that it is given."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.replication = Replication("", folder)
        settings = ApplierSettings(
            connect_string="", host="", port=0, table_query="", spool_directory=folder, **options
        )
        self.got = NotedDistribution()
        self.reception = Reception(
            settings, self.got, Unconfirmed(1 << 30), lambda: False  # type: ignore[arg-type]
        )  # fmt: skip

    def messages(self) -> list[bytes]:
        """Every message of the script."""
        found = []
        for one in self.replication.script.transactions:
            edges = Elements(
                LastCommitedScn(0), np.frombuffer(bytes(one.blob), np.uint8), ByteOrder.LITTLE, 0
            ).offsets.tolist()
            found += [bytes(one.blob)[a:b] for a, b in pairwise(edges)]
        return found

    def take(self, *messages: bytes) -> None:
        blob = np.frombuffer(bytearray(b"".join(messages)), np.uint8)
        self.reception.take(Elements(LastCommitedScn(0), blob, ByteOrder.LITTLE, len(messages)))


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """Two transactions, of 2 changes of ``S.T`` and of one each of ``S.T`` and ``S.U``."""
    made = Client(tmp_path)
    r = made.replication
    r.transaction(r.insert({"ID": 1}), r.insert({"ID": 2}))
    r.transaction(r.insert({"ID": 3}), r.insert({"ID": 1}, table="U"))
    return made


def test_what_came_at_once_is_delivered_by_table(client: Client) -> None:
    client.take(*client.messages())
    assert client.got.given == [("S.T", [10, 10, 20]), ("S.U", [20])]
    assert (client.reception.open_scn, client.reception.last_scn) == (None, 20)


@pytest.mark.parametrize("cut", range(1, 8))
def test_any_cut_delivers_the_same_and_no_open_transaction(client: Client, cut: int) -> None:
    messages = client.messages()
    client.take(*messages[:cut])
    assert client.reception.open_scn == {4: None}.get(cut, 10 if cut < 4 else 20)
    assert sum(len(scns) for _, scns in client.got.given) == (2 if cut >= 4 else 0)
    client.take(*messages[cut:])
    delivered = [(table, scn) for table, scns in client.got.given for scn in scns]
    assert sorted(delivered) == [("S.T", 10), ("S.T", 10), ("S.T", 20), ("S.U", 20)]
    assert client.reception.open_scn is None
    assert client.got.released[-1] == 20


def test_what_is_open_is_forgotten_with_the_connection(client: Client) -> None:
    messages = client.messages()
    client.take(*messages[:6])
    client.reception.forget(7)
    assert (client.reception.open_scn, client.reception.last_scn) == (None, 7)
    client.take(*messages[4:])
    assert client.got.given == [("S.T", [10, 10]), ("S.T", [20]), ("S.U", [20])]


def test_an_open_transaction_that_is_too_large_is_spooled(tmp_path: Path) -> None:
    client = Client(tmp_path, spool_bytes=100)
    r = client.replication
    r.transaction(*(r.insert({"ID": n, "V": "x" * 50}) for n in range(4)), xid=77)
    *most, last = client.messages()
    client.take(*most[:3])
    client.take(*most[3:])
    assert client.got.spooled == []
    client.take(last)
    assert (client.got.spooled, client.got.given) == ([77], [])


def test_what_has_ended_counts_until_it_is_durable() -> None:
    unconfirmed = Unconfirmed(3 * TRANSACTION_BYTES)
    unconfirmed.add(1_000_000)
    assert not unconfirmed.is_too_much(1)  # open: its Commit has to come
    unconfirmed.end(1, 10)
    assert unconfirmed.is_too_much(10)
    assert not unconfirmed.is_too_much(11)
    unconfirmed.end(3, 20)
    assert not unconfirmed.is_too_much(20)
    unconfirmed.add(1)
    unconfirmed.end(0, 20)
    assert unconfirmed.is_too_much(20)
    assert not unconfirmed.is_too_much(None)


def test_what_comes_again_does_not_count() -> None:
    unconfirmed = Unconfirmed(10)
    unconfirmed.add(5)
    unconfirmed.end(1, 10)
    unconfirmed.add(5)
    assert unconfirmed.is_too_much(10)
    unconfirmed.forget()
    unconfirmed.end(0, 20)
    assert not unconfirmed.is_too_much(1)


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
