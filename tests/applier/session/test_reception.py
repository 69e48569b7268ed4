"""Elements are delivered by table once their Commit is here, however they are cut.

What the server has to keep for a client, as the client counts it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.applier.session.reception import Reception, Unconfirmed
from olr_pg.applier.settings import ApplierSettings
from olr_pg.wire.client import Elements
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import LastCommitedScn
from olr_pg.wire.protocol import TRANSACTION_BYTES
from tests.applier.conftest import Replication

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.applier.batches.spool import Spool
    from olr_pg.applier.statements.table_changes import Selection


class Distribution:
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
        self.got = Distribution()
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
