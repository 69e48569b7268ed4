"""A client of the published tables alone, at the port of a run started as in OLR's manual."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.simulator.database_shape import DatabaseShape, demo_shape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.server.manual_client import (
    BEGIN,
    CHUNK,
    COMMIT,
    DELETE,
    INSERT,
    REPLICATING,
    UPDATE,
    WAIT_START_SCN,
    WAIT_TABLE_LIST,
    Element,
    ManualClient,
    RefusedError,
)
from tests.server.manual_run import FILE, manual_run, olr_file
from tests.server.manual_truth import check_transaction, read_truth, receive_transaction

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EVERYTHING = "SELECT OWNER, TABLE_NAME FROM USER_TABLES"


def offline(folder: Path) -> dict[str, Any]:
    """The file, with the simulation below the working directory as its source."""
    source = {"kind": "offline", "dictionary": "../sim/dictionary.json", "logs": "../sim/logs"}
    return olr_file(source=source)


def refused(request: Callable[[], object]) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        request()
    assert caught.value.text.startswith(f"OLR-{caught.value.code:05d}: ")
    return caught.value


def subscribe_with_everything_refused_on_the_way(client: ManualClient) -> None:
    """Each state, with every request that it does not allow; none of them changes anything."""
    assert client.status() == WAIT_TABLE_LIST
    assert client.saved_scn() is None
    for request in (client.start_scn, client.last_commited_scn, client.back_to_scn):
        refused(lambda request=request: request(0))  # type: ignore[misc]
    refused(lambda: client.table_list("SELECT OWNER FROM"))
    refused(lambda: client.table_list("SELECT OWNER FROM USER_TABLES"))
    refused(lambda: client.table_list("SELECT 'NO', 'SUCH' FROM DUAL"))
    assert client.status() == WAIT_TABLE_LIST
    client.table_list(EVERYTHING)
    assert client.status() == WAIT_START_SCN
    refused(lambda: client.table_list(EVERYTHING))
    for request in (client.last_commited_scn, client.back_to_scn):
        refused(lambda request=request: request(0))  # type: ignore[misc]
    assert client.saved_scn() is None
    assert client.status() == WAIT_START_SCN
    client.start_scn(0)
    assert client.status() == REPLICATING
    refused(lambda: client.table_list(EVERYTHING))
    refused(lambda: client.start_scn(0))
    assert client.status() == REPLICATING


CASES = {
    "every-type": (
        5,
        "random",
        250_000,
        DatabaseShape(RedoFormat(COMPATIBLE["19"]), pace=Pace(200)),
    ),
    "lobs": (3, "lobs", 1_000_000, DatabaseShape(RedoFormat(COMPATIBLE["23"]), pace=Pace(1000))),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", CASES)
def test_every_message_in_every_state(tmp_path: Path, case: str) -> None:
    seed, workload, size, shape = CASES[case]
    simulate(seed, tmp_path / "sim", workload=workload, size=size, shape=shape)
    truth = read_truth(tmp_path / "sim" / "truth.jsonl")
    assert len(truth) > 5
    half = len(truth) // 2
    scns = [int(lines[0]["commit_scn"]) for lines in truth]
    with manual_run(tmp_path, offline(tmp_path)) as (address, printed):
        with ManualClient(address) as client:
            subscribe_with_everything_refused_on_the_way(client)
            received = [receive_transaction(client, 0) for _ in range(half)]
            # Back into what was sent, from the middle of a transaction.
            client.next(0)
            back = client.back_to_scn(scns[0])
            again = follow(client, back, scns[0], received)
            # Confirmed up to there, it is not sent again, however far a client goes back.
            confirmed = max((scn for scn in scns[:half] if scn < scns[half]), default=0)
            client.next(confirmed)
            begin = client.back_to_scn(0)
            assert begin is not None
            assert begin.commit_scn > confirmed > 0
            received = received[: begin_of(received, begin)]
            received.append(rest_of(client, begin))
            while len(received) < len(truth):
                received.append(receive_transaction(client, 0))
            assert client.last_commited_scn(0) is None
            assert again > 0
            codes = {element.code for elements in received for element in elements}
            assert codes == {BEGIN, COMMIT, INSERT, DELETE, UPDATE, CHUNK}
            for elements, lines in zip(received, truth, strict=True):
                check_transaction(elements, lines)
            assert client.last_commited_scn(scns[-1]) is None
            client.log_off()
        with ManualClient(address) as client:
            assert client.status() == WAIT_TABLE_LIST
            saved = client.saved_scn()
            assert saved is not None
            assert saved > int(truth[-1][0]["scn"])
            client.table_list(EVERYTHING)
            client.start_scn(saved)
            assert client.last_commited_scn(0) is None
    (started,) = [line for line in printed if "starting" in line]
    for part in (version("olr-pg"), "architecture=", str(tmp_path / FILE)):
        assert part in started
    assert (tmp_path / "olr_data" / "checkpoint.json").exists()


def follow(
    client: ManualClient, begin: Element | None, scn: int, received: list[list[Element]]
) -> int:
    """What was received above an SCN comes again, element by element; how many transactions."""
    expected = [one for one in received if one[0].commit_scn > scn]
    assert begin is not None
    assert [begin, *(client.next(0) for _ in range(sum(map(len, expected)) - 1))] == [
        element for one in expected for element in one
    ]
    return len(expected)


def begin_of(received: list[list[Element]], begin: Element) -> int:
    """How many of the transactions received lie before the one that begins so."""
    keys = [(one[0].commit_scn, one[0].xid) for one in received]
    key = begin.commit_scn, begin.xid
    return keys.index(key) if key in keys else len(keys)


def rest_of(client: ManualClient, begin: Element) -> list[Element]:
    """A transaction whose Begin is here."""
    elements = [begin]
    while elements[-1].code != COMMIT:
        elements.append(client.next(0))
    return elements


@pytest.mark.timeout(900)
def test_the_command_without_its_options_is_the_manual_s(tmp_path: Path) -> None:
    simulate(1, tmp_path / "sim", workload="orders", size=100_000, shape=demo_shape())
    truth = read_truth(tmp_path / "sim" / "truth.jsonl")
    with (
        manual_run(tmp_path, offline(tmp_path), ("run",)) as (address, printed),
        ManualClient(address) as client,
    ):
        client.table_list(EVERYTHING)
        client.start_scn(0)
        for lines in truth:
            check_transaction(receive_transaction(client, 0), lines)
        client.log_off()
    assert any("info" in line and "starting" in line for line in printed)
