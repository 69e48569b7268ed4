"""The alert rules fire for what they are for, and for nothing else.

The metrics are those that an appliance exports, of a status that changes with the time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from olr_pg.monitor.metrics import make_registry
from olr_pg.monitor.status_values import (
    PortStatus,
    ProcessStatus,
    SourceStatus,
    StageState,
    Status,
    TableStatus,
    ThreadStatus,
)
from tests.configs.promql_subset import Alert, Recording, firing, names

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT: Final = Path(__file__).parents[2]
RULES: Final = ROOT / "configs" / "prometheus" / "olr-pg.rules.yml"
STEP: Final = 15
LONG_STEP: Final = 120
HOUR: Final = 3600
BEGIN, END = 10 * 60, 20 * 60
"""Of what happens."""

Course = "Callable[[Status, float], Status | None]"
"""The status at a time, from the quiet one; None: no appliance answers."""

START: Final = 1_800_000_000.0
QUIET: Final = Status(
    version="1.2.3",
    at=START,
    started_at=START - HOUR,
    state=StageState("CAUGHT_UP", START, None),
    source=SourceStatus(decoded_scn=100, threads=(ThreadStatus(1, 21, 100, START, 21, 100),)),
    port=PortStatus("127.0.0.1:9700", connections=1, client="127.0.0.1:4"),
    process=ProcessStatus(1, 1 << 28, 40, 20, 1 << 29),
    tables=(
        TableStatus("SHOP.ORDERS", applied_scn=99, verified_scn=90, verified_at=START),
        TableStatus("SHOP.STOCK", applied_scn=98),
    ),
    archive_seconds=5.0,
    data_free_bytes=100 << 30,
    data_free_ratio=0.5,
)


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return list(group["rules"])


def alerts() -> list[Alert]:
    units = {"s": 1, "m": 60, "h": 3600}
    return [
        Alert(rule["alert"], rule["expr"], int(span[:-1]) * units[span[-1]])
        for rule in rules()
        for span in [rule.get("for", "0s")]
    ]


def record(
    course: Callable[[Status, float], Status | None],
    seconds: float,
    step: int = STEP,
    *,
    only_changed: bool = False,
) -> Recording:
    """Scrape the appliance each `step` seconds."""
    recording = Recording()
    target = {"job": "olr_pg", "instance": "a:9701"}
    for at in range(0, int(seconds) + 1, step):
        status = course(replace(QUIET, at=START + at), at)
        recording.add("up", target, at, float(status is not None))
        if status is None:
            continue
        registry = make_registry(lambda status=status: status, only_changed=only_changed)  # type: ignore[misc]
        for family in registry.collect():
            for sample in family.samples:
                recording.add(sample.name, {**sample.labels, **target}, at, float(sample.value))
    return recording


def state(name: str) -> Callable[[Status, float], Status | None]:
    return lambda quiet, at: replace(quiet, state=StageState(name, START + BEGIN, "why"))


def lagging(status: Status, at: float) -> Status:
    """Everything waits since the begin."""
    tables = tuple(replace(table, lag_seconds=at - BEGIN) for table in status.tables)
    return replace(status, tables=tables)


def outage(quiet: Status, at: float) -> Status | None:
    away = replace(quiet, state=StageState("WAITING_FOR_TARGET", START + BEGIN, "away"))
    return lagging(replace(away, problems=("WAITING_FOR_TARGET: away",)), at)


def gap(quiet: Status, at: float) -> Status | None:
    source = replace(quiet.source, gaps=("OLR-02010: sequence 9 is missing [thread 1]",))
    waiting = StageState("WAITING_FOR_REDO", START + BEGIN, "a log is missing")
    return lagging(replace(quiet, source=source, state=waiting), at)


def full_quota(quiet: Status, at: float) -> Status | None:
    """The file system has room, but not for this user."""
    full = StageState("WAITING_FOR_DISK", START + BEGIN, "OLR-01160")
    return lagging(replace(quiet, state=full), at)


def stopped_table(quiet: Status, at: float) -> Status | None:
    first, *others = quiet.tables
    held = replace(first, stopped="OLR-05009: …", held_scn=90, lag_seconds=at - BEGIN)
    return replace(
        quiet, tables=(held, *others), state=StageState("TARGET_BEHIND", START + BEGIN, "stopped")
    )


def conflicts(quiet: Status, at: float) -> Status | None:
    first, *others = quiet.tables
    return replace(quiet, tables=(replace(first, conflicts=int(at - BEGIN) // 60), *others))


def conflict(quiet: Status, _: float) -> Status | None:
    """The only one of the run."""
    *others, last = quiet.tables
    return replace(quiet, tables=(*others, replace(last, conflicts=1)))


def refused(quiet: Status, at: float) -> Status | None:
    return replace(quiet, port=replace(quiet.port, refused={"OLR-04031": int(at - BEGIN)}))


def ailing(code: str) -> Callable[[Status, float], Status | None]:
    return lambda quiet, _: replace(quiet, problems=(code,), target_problems={code: 2})


def differing(quiet: Status, _: float) -> Status | None:
    first, *others = quiet.tables
    return replace(quiet, tables=(replace(first, differences=2), *others))


EVENTS: Final[dict[str, tuple[Any, str]]] = {
    "rows differ from the source's": (differing, "OlrPgDifferences"),
    "PostgreSQL is away, or full": (outage, "OlrPgTargetUnreachable"),
    "a log is missing": (gap, "OlrPgLogMissing"),
    "the disk is full": (
        lambda quiet, _: replace(quiet, data_free_bytes=1 << 20, data_free_ratio=0.001),
        "OlrPgDiskFull",
    ),
    "the disk gets full": (
        lambda quiet, _: replace(quiet, data_free_bytes=1 << 30, data_free_ratio=0.1),
        "OlrPgDiskLow",
    ),
    "a quota is used up": (full_quota, "OlrPgDiskFull"),
    "a table has stopped": (stopped_table, "OlrPgTableStopped"),
    "the source is down": (state("WAITING_FOR_SOURCE"), "OlrPgSourceUnreachable"),
    "decoding has ended": (state("STOPPED"), "OlrPgFailed"),
    "the appliance is down": (lambda _quiet, _at: None, "OlrPgDown"),
    "rows are overwritten": (conflicts, "OlrPgConflicts"),
    "a row is overwritten": (conflict, "OlrPgConflicts"),
    "a key has no index": (ailing("OLR-05161"), "OlrPgTargetSlow"),
    "nobody vacuums": (ailing("OLR-05163"), "OlrPgTargetSlow"),
    "dead rows pile up": (ailing("OLR-05164"), "OlrPgTargetSlow"),
    "a table was never analyzed": (ailing("OLR-05165"), "OlrPgTargetSlow"),
    "a transaction stays open": (ailing("OLR-05168"), "OlrPgTargetSlow"),
    "transaction IDs run out": (ailing("OLR-05166"), "OlrPgTargetEndangered"),
    "a slot keeps WAL": (ailing("OLR-05167"), "OlrPgTargetEndangered"),
    "somebody knocks": (refused, "OlrPgRefusedConnections"),
    "changes are lost": (
        lambda quiet, _: replace(quiet, source=replace(quiet.source, losses=2)),
        "OlrPgUnaccounted",
    ),
}


def during(event: Any) -> Callable[[Status, float], Status | None]:
    def course(quiet: Status, at: float) -> Status | None:
        return event(quiet, at) if BEGIN <= at < END else quiet

    return course


def busy(quiet: Status, at: float) -> Status | None:
    """Work as it comes: every state that is no fault, a little lag."""
    names = ("DECODING", "SPILLING", "PAUSED_FOR_FLOW_CONTROL", "TARGET_BEHIND", "CAUGHT_UP")
    name = names[int(at) // 60 % len(names)]
    tables = tuple(replace(table, lag_seconds=at % 300) for table in quiet.tables)
    return replace(quiet, state=StageState(name, START, None), tables=tables)


def idle(quiet: Status, at: float) -> Status | None:
    """An hour in which Oracle archives nothing."""
    return replace(quiet, archive_seconds=at, tables=quiet.tables)


@pytest.mark.parametrize("only_changed", [False, True])
@pytest.mark.parametrize("event", EVENTS)
def test_what_happens_fires_its_alert_and_no_other(event: str, *, only_changed: bool) -> None:
    course, alert = EVENTS[event]
    times = range(0, 40 * 60 + 1, STEP)
    recording = record(during(course), times[-1], only_changed=only_changed)
    found = firing(alerts(), recording, times)
    assert {tuple(fired) for fired in found.values()} == {(), (alert,)}
    first = min(at for at, fired in found.items() if fired)
    assert first <= BEGIN + 5 * 60 + STEP
    assert found[times[-1]] == []


LONG: Final = ("PostgreSQL is away, or full", "a log is missing", "a quota is used up")


@pytest.mark.parametrize("event", [*LONG, "the source is down", "a table has stopped"])
def test_a_night_of_it_is_still_one_alert(event: str) -> None:
    course, alert = EVENTS[event]

    def night(quiet: Status, at: float) -> Status | None:
        status = course(quiet, at) if at >= BEGIN else quiet
        # Nobody looks for logs meanwhile, but for a table's sake nobody waits.
        is_blind = at >= BEGIN and event != "a table has stopped"
        return replace(status, archive_seconds=at - BEGIN) if is_blind else status

    times = range(0, 6 * HOUR, LONG_STEP)
    found = firing(alerts(), record(night, times[-1], LONG_STEP), times)
    assert {tuple(fired) for fired in found.values()} == {(), (alert,)}


def test_a_run_that_ends_soon_after_each_start_fires_one_alert() -> None:
    life = 4 * 60

    def restarting(quiet: Status, at: float) -> Status | None:
        if at < BEGIN:
            return quiet
        age = (at - BEGIN) % life
        return None if age < STEP else replace(quiet, started_at=quiet.at - age)

    times = range(0, HOUR + 1, STEP)
    found = firing(alerts(), record(restarting, HOUR), times)
    assert {tuple(fired) for fired in found.values()} == {(), ("OlrPgRestarts",)}
    assert min(at for at, fired in found.items() if fired) <= BEGIN + 3 * life
    assert found[times[-1]] == ["OlrPgRestarts"]


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_pause_fires_an_alert_only_if_it_is_forgotten(*, is_whole: bool) -> None:
    def paused(quiet: Status, at: float) -> Status | None:
        first, *others = quiet.tables
        tables = (replace(first, paused=True, lag_seconds=at), *others)
        name = "PAUSED" if is_whole else "TARGET_BEHIND"
        return replace(quiet, tables=tables, state=StageState(name, START, "paused"))

    times = range(0, 13 * HOUR, LONG_STEP)
    found = firing(alerts(), record(paused, times[-1], LONG_STEP), times)
    assert {tuple(fired) for at, fired in found.items() if at < 12 * HOUR} == {()}
    assert found[times[-1]] == ["OlrPgPaused"]


@pytest.mark.parametrize("only_changed", [False, True])
def test_many_tables_that_are_behind_are_one_alert(*, only_changed: bool) -> None:
    def slow(quiet: Status, at: float) -> Status | None:
        tables = tuple(TableStatus(f"SHOP.T{n}", lag_seconds=1000.0 + n) for n in range(20))
        return replace(quiet, tables=tables)

    times = range(0, HOUR, LONG_STEP)
    recording = record(slow, HOUR, LONG_STEP, only_changed=only_changed)
    found = firing(alerts(), recording, times)
    assert found[times[-1]] == ["OlrPgBehind"]


def test_an_oracle_that_archives_nothing_is_told() -> None:
    times = range(0, 3 * HOUR, LONG_STEP)
    found = firing(alerts(), record(idle, times[-1], LONG_STEP), times)
    assert found[times[-1]] == ["OlrPgNothingArchived"]


def small(quiet: Status, at: float) -> Status | None:
    """A small disk that is not full: a volume of a container, say."""
    return replace(quiet, data_free_bytes=40 << 20, data_free_ratio=0.6)


def beginning(quiet: Status, at: float) -> Status | None:
    """A start that has not come to any position yet."""
    tables = tuple(replace(table, applied_scn=None) for table in quiet.tables)
    return replace(
        quiet,
        state=StageState("STARTING", START, None),
        source=SourceStatus(),
        tables=tables,
        archive_seconds=None,
    )


@pytest.mark.parametrize(
    "course", [idle, busy, small, beginning], ids=lambda course: course.__name__
)
def test_an_hour_of_quiet_fires_nothing(course: Any) -> None:
    times = range(0, HOUR + 1, STEP)
    found = firing(alerts(), record(course, HOUR), times)
    assert set().union(*found.values()) == set()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_is_whole(rule: dict[str, Any]) -> None:
    exported = {name for name, _, _ in record(lambda quiet, _: quiet, 0).items()} | {
        # Of what there is none of yet.
        *("olr_pg_refused_total", "olr_pg_oldest_open_transaction_seconds"),
        "olr_pg_target_problems",
    }
    assert names(rule["expr"]) <= exported
    assert rule["labels"]["severity"] in ("critical", "warning")
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    known = {re.sub(r"[^\w\s-]", "", one.lower()).replace(" ", "-") for one in headings}
    assert anchor in known
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".")


def promtool() -> str | None:
    return os.environ.get("OLR_PG_PROMTOOL") or shutil.which("promtool")


def test_promtool_agrees(tmp_path: Path) -> None:
    program = promtool()
    if program is None:
        pytest.skip("promtool judges the rules where it is on the PATH, or in OLR_PG_PROMTOOL")
    subprocess.run([program, "check", "rules", RULES], check=True, capture_output=True)
    cases = {name: (during(course), alert) for name, (course, alert) in EVENTS.items()}
    tests = [promtool_case(*case) for case in cases.values()]
    tests += [promtool_case(course, None) for course in (idle, busy, small)]
    document = {"rule_files": [str(RULES)], "evaluation_interval": f"{STEP}s", "tests": tests}
    path = tmp_path / "rules.test.yml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    done = subprocess.run(
        [program, "test", "rules", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def promtool_case(course: Any, alert: str | None) -> dict[str, Any]:
    """What fires shortly before the end of what happens, and at the end of all."""
    seconds = HOUR if alert is None else 40 * 60
    recording = record(course, seconds)
    count = seconds // STEP + 1
    series = []
    for name, labels, samples in recording.items():
        values = dict(zip(samples.seconds, samples.values, strict=True))
        told = ", ".join(f'{key}="{value}"' for key, value in sorted(labels))
        written = " ".join(str(values.get(at * STEP, "_")) for at in range(count))
        series.append({"series": f"{name}{{{told}}}", "values": written})
    expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
    wanted = [] if alert is None else [{"labels": f'{{alertname="{alert}"}}', "value": 1}]
    at_end = {"expr": expression, "eval_time": f"{seconds}s", "exp_samples": []}
    tests = [at_end, {**at_end, "eval_time": f"{END - STEP}s", "exp_samples": wanted}]
    return {"interval": f"{STEP}s", "input_series": series, "promql_expr_test": tests}
