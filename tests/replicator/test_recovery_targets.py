"""Bounded recovery with several targets, which confirm at different places."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.decoding.split import plan_splits
from olr_pg.errors import OlrPgError
from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery, Need
from olr_pg.replicator.recovery.image_files import Image, Mark, read_image
from olr_pg.server.queue import QueueBounds
from olr_pg.transactions.waiting_storage import IN_MEMORY
from tests.replicator.recovery_runs import QUERY, SOURCE, SPLIT_BYTES, Client, Delivered, Restarts
from tests.replicator.test_recovery import LOGS, OpenForLong, merged, one_pass, sequences

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from olr_pg.capture.archived_log import ArchivedLog

WAIT_SECONDS = 240.0
SHORT = "SELECT owner, table_name FROM all_tables WHERE table_name = 'T_SHORT'"
LONG = "SELECT owner, table_name FROM all_tables WHERE table_name = 'T_LONG'"
BOTH = {"a": QUERY, "b": QUERY}


@pytest.fixture(scope="module")
def long_open(tmp_path_factory: pytest.TempPathFactory) -> OpenForLong:
    return OpenForLong(tmp_path_factory.mktemp("long"))


@pytest.fixture
def restarts(long_open: OpenForLong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Restarts:
    return Restarts(tmp_path, long_open.snapshot, monkeypatch)


def run_once(
    restarts: Restarts,
    queries: Mapping[str, str],
    confirmed: Mapping[str, int] | None = None,
    absent: tuple[str, ...] = (),
) -> dict[str, list[Delivered]]:
    """All targets start together, take all there is, confirm (−1: all), and end."""
    decoder = restarts.decoder(*queries, *absent)
    for target in absent:
        decoder.runs.stop_expecting(target)
    clients = {target: restarts.client(decoder, target) for target in queries}
    for target, query in queries.items():
        clients[target].start(query)
    delivered = {target: client.take_all() for target, client in clients.items()}
    for target, client in clients.items():
        assert client.delivery.failure is None
        client.confirm(delivered[target], (confirmed or {}).get(target, -1))
    for client in clients.values():
        client.close()
    return delivered


def images(restarts: Restarts) -> set[str]:
    return {path.name for path in restarts.recovery.glob("*.json")}


def image_scn(restarts: Restarts, target: str) -> int:
    """The SCN from which on a start of the target reads; 0 without an image."""
    name = restarts.checkpoint(target).image
    return 0 if name is None else read_image(restarts.recovery / name, SOURCE).read_scn


def expected_of(blobs: list[bytes], table: bytes) -> list[bytes]:
    return [blob for blob in blobs if table in blob]


def test_a_restart_of_several_reads_from_the_bounded_position(
    long_open: OpenForLong, restarts: Restarts
) -> None:
    """One of them has other tables; each log is read once for both."""
    queries = {"a": QUERY, "b": SHORT}
    runs: dict[str, list[list[Delivered]]] = {"a": [], "b": []}
    for count, log in enumerate(long_open.logs):
        restarts.archive([log])
        for target, delivered in run_once(restarts, queries).items():
            runs[target].append(delivered)
        if count > 1:
            assert restarts.read.count(log.header.sequence) == len(restarts.read)
    whole = one_pass(restarts, long_open.logs)
    assert merged(runs["a"]) == whole
    assert merged(runs["b"]) == expected_of(whole, b"T_SHORT")
    # Each checkpoint kept its meaning, and nothing is open any more.
    assert restarts.checkpoint("a").saved == restarts.checkpoint("b").saved
    assert list(restarts.recovery.iterdir()) == []


def test_a_slow_one_has_its_own_point_and_nobody_removes_it(
    long_open: OpenForLong, restarts: Restarts
) -> None:
    logs = long_open.logs
    restarts.archive(logs[:4])
    runs = [run_once(restarts, BOTH)]
    slow = restarts.checkpoint("b").image
    assert slow is not None
    for log in logs[4:-1]:
        restarts.archive([log])
        # It takes everything and confirms nothing.
        runs.append(run_once(restarts, BOTH, {"b": 0}))
        assert restarts.checkpoint("b").image == slow
        assert restarts.read == [
            one.header.sequence for one in logs[4 : logs.index(log) + 1] for _ in splits_of(one)
        ]
    quick = restarts.checkpoint("a").image
    assert quick is not None
    assert {slow, quick} == images(restarts)
    # By itself, each begins with its own image: only the last log is new to the quick one.
    restarts.archive(logs[-1:])
    runs.append(run_once(restarts, {"a": QUERY}, absent=("b",)))
    assert set(restarts.read) == {logs[-1].header.sequence}
    assert images(restarts) == {slow}
    runs.append(run_once(restarts, BOTH))
    whole = one_pass(restarts, logs)
    for target in BOTH:
        assert merged([run[target] for run in runs if target in run]) == whole
    assert list(restarts.recovery.iterdir()) == []


def splits_of(log: ArchivedLog) -> range:
    return range(len(plan_splits(log, SPLIT_BYTES)))


def test_one_that_stays_away_keeps_its_image_and_one_without_checkpoint_none(
    long_open: OpenForLong, restarts: Restarts
) -> None:
    logs = long_open.logs
    restarts.archive(logs[:4])
    first = run_once(restarts, BOTH, absent=("never",))
    kept = restarts.checkpoint("b").image
    for log in logs[4:-1]:
        restarts.archive([log])
        run_once(restarts, {"a": QUERY}, absent=("b", "never"))
        assert set(restarts.read) == {log.header.sequence}
        assert images(restarts) == {kept, restarts.checkpoint("a").image}
    restarts.archive(logs[-1:])
    last = run_once(restarts, {"b": QUERY}, absent=("a", "never"))
    assert list(dict.fromkeys(restarts.read)) == sequences(logs[4:])
    assert merged([first["b"], last["b"]]) == one_pass(restarts, logs)
    run_once(restarts, {"a": QUERY}, absent=("b", "never"))
    assert list(restarts.recovery.iterdir()) == []
    assert restarts.checkpoint("never").saved is None


def test_what_a_kill_leaves_behind_is_used_by_all(
    long_open: OpenForLong, restarts: Restarts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one's checkpoint was written before the kill, the other's was not."""
    logs = long_open.logs
    restarts.archive(logs[:4])
    runs = [run_once(restarts, BOTH)]
    before = restarts.checkpoint("b")
    restarts.archive(logs[4:-1])
    with monkeypatch.context() as patch:
        patch.setattr(BoundedRecovery, "clean", lambda *_: None)
        runs.append(run_once(restarts, BOTH, {"b": 0}))
    left = images(restarts)
    assert restarts.checkpoint("b").image == before.image
    assert len(left) > 3
    restarts.archive(logs[-1:])
    runs.append(run_once(restarts, BOTH))
    # From the older of the two points, once for both.
    assert list(dict.fromkeys(restarts.read)) == sequences(logs[4:])
    whole = one_pass(restarts, logs)
    for target in BOTH:
        assert merged([run[target] for run in runs]) == whole
    assert list(restarts.recovery.iterdir()) == []


class Live:
    """Targets of an appliance that goes on, with what each was given."""

    def __init__(self, restarts: Restarts, *targets: str) -> None:
        self.decoder = restarts.decoder(*targets, once=False, together=False)
        self.restarts = restarts
        self.clients: dict[str, Client] = {}
        self.taken: dict[str, list[Delivered]] = {}

    def start(self, target: str, query: str, scn: int | None = None, **dials: Any) -> None:
        client = self.clients[target] = self.restarts.client(self.decoder, target, **dials)
        client.start(query, scn)
        self.taken[target] = []

    def take_until(self, condition: Callable[[], bool], *targets: str) -> None:
        """Let targets take and confirm what there is until a condition holds."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert time.monotonic() < deadline
            for target in targets:
                client = self.clients[target]
                assert client.delivery.failure is None
                taken = client.take()
                self.taken[target] += taken
                client.confirm(self.taken[target])
            time.sleep(0.01)  # the protocol's own pace: there is nothing to wait on

    def has_taken(self, target: str, transactions: int) -> Callable[[], bool]:
        return lambda: len(self.taken[target]) >= transactions

    @property
    def runs(self) -> int:
        return len({id(client.delivery.progress) for client in self.clients.values()})

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


def test_one_left_behind_goes_on_from_an_image_and_so_do_both_together(
    long_open: OpenForLong, restarts: Restarts
) -> None:
    logs = long_open.logs
    whole = one_pass(restarts, logs)
    restarts.archive(logs[:6])
    live = Live(restarts, "a", "b")
    try:
        live.start("a", QUERY)
        live.take_until(lambda: restarts.checkpoint("a").image is not None, "a")
        live.start("b", QUERY, bounds=QueueBounds(transactions_max=2))
        # It takes what there is and is decoded for together with the other, then nothing more.
        live.take_until(lambda: live.runs == 1, "a", "b")
        # The common run is the third that reads the last of these logs.
        (last,) = sequences(logs[5:6])
        live.take_until(lambda: restarts.read.count(last) == 3, "a", "b")
        seen = len(restarts.read)
        for log in logs[6:-1]:
            restarts.archive([log])
        live.take_until(live.has_taken("a", LOGS), "a")
        live.take_until(lambda: live.runs == 2, "a")
        live.take_until(live.has_taken("b", LOGS), "b")
        live.take_until(lambda: live.runs == 1, "a", "b")
        # Neither leaving the common run nor coming back read what lies before the images.
        again = restarts.read[seen:]
        assert set(again) <= set(sequences(logs[5:-1]))
        restarts.archive(logs[-1:])
        for target in BOTH:
            live.take_until(live.has_taken(target, len(whole)), "a", "b")
            assert [one.blob for one in live.taken[target]] == whole
    finally:
        live.close()


def test_later_targets_with_other_tables_are_decoded_for_apart_while_it_is_open(
    long_open: OpenForLong, restarts: Restarts
) -> None:
    """No image is of what both lack: joined, they would read the transaction from its begin."""
    logs = long_open.logs
    whole = one_pass(restarts, logs)
    restarts.archive(logs[:5])
    began = logs[4].header.first_scn
    live = Live(restarts, "a", "b")
    try:
        live.start("a", LONG)
        live.take_until(lambda: restarts.checkpoint("a").image is not None, "a")
        live.start("b", SHORT, began)
        first = len(restarts.read)
        for log in logs[5:-1]:
            restarts.archive([log])
        newest = logs[-2].header.first_scn
        live.take_until(lambda: image_scn(restarts, "a") > newest, "a", "b")
        # What is open began before it: it needs no image.
        live.take_until(lambda: (restarts.checkpoint("b").saved or 0) > newest, "a", "b")
        assert restarts.checkpoint("b").image is None
        assert live.runs == 2
        assert set(restarts.read[first:]) <= set(sequences(logs[4:-1]))
        # A restart in between begins with what each has.
        live.close()
        again = run_once(restarts, {"a": LONG, "b": SHORT}, {"a": 0, "b": 0})
        assert set(restarts.read) <= set(sequences(logs[-3:]))
        assert again == {"a": [], "b": []}
        live = Live(restarts, "a", "b")
        live.start("a", LONG)
        live.start("b", SHORT)
        restarts.archive(logs[-1:])
        live.take_until(live.has_taken("a", 1), "a", "b")
        # It has ended: one decode for both.
        live.take_until(lambda: live.runs == 1, "a", "b")
        assert b"T_LONG" in live.taken["a"][0].blob
        live.take_until(lambda: restarts.checkpoint("a").image is None, "a", "b")
        assert live.taken["a"][0].blob == expected_of(whole, b"T_LONG")[-1]
    finally:
        live.close()


def test_an_image_of_a_newer_version_is_refused(long_open: OpenForLong, restarts: Restarts) -> None:
    restarts.archive(long_open.logs[:-1])
    run_once(restarts, {"": QUERY})
    name = restarts.checkpoint().image
    assert name is not None
    path = restarts.recovery / name
    document = json.loads(path.read_bytes())
    document["image"]["version"] = 99
    path.write_text(json.dumps(document), "utf-8")
    restarts.checkpoint("b").save(1_000_000, name)
    with pytest.raises(OlrPgError) as caught:
        restarts.decoder("a", "b")
    assert caught.value.code == 4035
    assert path.exists()


def test_an_image_without_the_begin_of_what_somebody_lacks_does_not_serve_it(
    tmp_path: Path,
) -> None:
    """It was taken by a run that began behind the begin of a transaction that is open."""
    recovery = BoundedRecovery(tmp_path, SOURCE, 1, IN_MEMORY)
    older, newer = (
        Image(
            source=SOURCE,
            marks=[Mark(thread=1, resetlogs_id=1, sequence=1, dbid=1, scn=scn)],
            watermarks=[(1, scn)],
            commit_scn=scn - 1,
            tables=[],
            sessions=[],
            transactions=[],
            unowned=[],
            whole_scn=whole_scn,
            objects=[7],
        )
        for scn, whole_scn in ((100, 10), (200, 60))
    )
    recovery.publish("older", older, ["a"])
    recovery.publish("newer", newer, ["b"])
    before, behind = Need(50, 300, frozenset({7})), Need(60, 300, frozenset({7}))
    assert recovery.find([behind]) == ("newer", newer)
    assert recovery.find([before]) == recovery.find([before, behind]) == ("older", older)
    assert recovery.groups([before, behind]) == [[0, 1]]
    # One that has not got what committed before the older one can only read the redo.
    assert recovery.groups([before, Need(60, 98, frozenset({7}))]) == [[1], [0]]
