"""Every wait of the product has a bound of its own, or a reason here that says what ends it.

Whoever adds a wait gives it a timeout, or says here who ends it when nothing ever comes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

import pytest

from tests.package_trees import modules_with

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHERS: Final = ("simulator", "bench")
"""Rooms that no appliance and no command on a customer's data uses."""

BOUNDED_BY: Final = {
    "join": 1, "wait": 1, "result": 1, "get": 1, "acquire": 1, "communicate": 2, "wait_for": 2,
    "recv": None, "recv_into": None, "accept": None, "sendall": None, "exec_": None,
}  # fmt: skip
"""Calls that wait: how many arguments they have where one is a timeout; None: they never have."""

SIGNALS: Final = "a signal: the process ends within apply.shutdown-seconds (cli.signals)"
WATCH: Final = "StatementWatch gives up lost statements, and all of them when the appliance ends"
OVER: Final = "it is told to end first, and looks for that between pieces of bounded work"
READY: Final = "it is asked only when something is there, or the socket is shut to wake it"
DECODING: Final = "a piece of decoding: it waits for nothing but the processor and the disk"
CHANNEL: Final = "settimeout of its channel bounds each, and _Answered the opening of it"
TRANSPORT: Final = "source.transport bounds each answer; closing it ends what is on its way"
STATEMENT: Final = "source.query-timeout bounds each statement, and prove cancels them at its end"
OPERATOR: Final = "a command of the operator's, who ends it with Ctrl-C"

ALLOWED: Final = {
    ("appliance/demo_run.py", "join", "replicate"): "the demo's own watch; " + OVER,
    ("appliance/compiling_ahead.py", "wait", "kernels_ahead"): "the process was killed",
    ("appliance/demo_run.py", "wait", "abandon"): "the process was killed",
    ("appliance/demo_run.py", "communicate", "_failure"): "the process has ended",
    ("appliance/created_tables.py", "wait_for", "_next"): "stop() ends it",
    ("appliance/created_tables.py", "join", "stop"): "the process was ended, or killed",
    ("monitor/control.py", "wait", "run"): "stop() ends or kills the process",
    ("appliance/verifying.py", "join", "stop"): "the process was ended, or killed",
    ("applier/batches/shared_state.py", "wait_for", "wait"): WATCH,
    ("applier/batches/worker.py", "wait_for", "reset"): WATCH,
    ("applier/kernel_warmup.py", "join", "warming"): "compiling: it waits for nothing",
    ("applier/session/server_side.py", "sendall", "send"): "another process's applier; " + SIGNALS,
    ("applier/session/server_side.py", "recv_into", "receive"): READY,
    ("cli/migration/load.py", "join", "load_progress"): OVER,
    ("cli/migration/migrate.py", "join", "_looking"): OVER,
    ("cli/simulate.py", "wait", "simulate"): OPERATOR,
    ("cli/simulate.py", "wait", "_serve"): OPERATOR,
    ("datasource/survey.py", "result", "_read_split"): DECODING,
    ("fallback/fallback_run.py", "result", "run_all"): "it is done",
    ("load/lob_fetching.py", "join", "fetching_lobs"): "source.query-timeout; " + SIGNALS,
    ("load/copy_task.py", "result", "prefetched"): OPERATOR,
    ("load/row_progress.py", "join", "row_progress"): OVER,
    ("monitor/service.py", "accept", "accept"): READY,
    ("observability/periodic.py", "join", "join_started"): OVER,
    ("oracle/table_list_query.py", "join", "over"): OVER,
    ("oracle/transport/bfile_transport.py", "get", "read"): "source.query-timeout bounds its users",
    ("oracle/vault.py", "result", "fetch"): "it is done",
    ("oracle/vault.py", "result", "close"): TRANSPORT,
    ("oracle/transport/sftp_transport.py", "recv", "_receive_bytes"): CHANNEL,
    ("oracle/transport/sftp_transport.py", "sendall", "_send"): CHANNEL,
    ("ordered_window.py", "result", "in_order"): "who submitted the work bounds it; " + SIGNALS,
    ("oracle/transport/online_ranges.py", "result", "read"): TRANSPORT,
    ("postgres/embedded.py", "result", "_end_orphans"): "a value that is there",
    ("postgres/embedded.py", "join", "supervised"): "starting a server has a bound; " + OVER,
    ("postgres/bounded_connection.py", "result", "_shares_sessions"): "it is done",
    ("proving/script.py", "wait", "run"): STATEMENT,
    ("proving/script.py", "wait", "finish"): STATEMENT,
    ("proving/script.py", "wait", "close"): STATEMENT,
    ("proving/script.py", "join", "close"): STATEMENT,
    ("proving/script.py", "wait", "_work"): STATEMENT,
    ("rendering/parquet_files.py", "wait", "_end"): OPERATOR,
    ("rendering/parquet_files.py", "result", "write"): OPERATOR,
    ("rendering/parquet_files.py", "result", "_wait_for_one"): OPERATOR,
    (
        "replicator/kernel_warmup.py",
        "join",
        "_compile_in_two_processes",
    ): "compiling: it waits for nothing",
    ("replicator/process_decoding.py", "recv", "ask"): OPERATOR,
    ("replicator/process_decoding.py", "recv", "_serve"): "the other process closes its end",
    ("replicator/process_decoding.py", "join", "_lost"): "the process has ended",
    ("replicator/process_decoding.py", "join", "end"): "its socket was closed, which ends it",
    ("replicator/run_control.py", "join", "leave"): OVER,
    ("server/listener.py", "join", "stop"): "its socket was shut, which ends what it waits for",
    ("server/listener.py", "accept", "_accept"): READY,
    ("server/port_connection.py", "recv_into", "_serve"): READY,
    ("server/port_connection.py", "sendall", "_serve"): "a client may apply for long; " + READY,
    ("server/port_connection.py", "recv", "end"): READY,
    ("spark/jobs.py", "result", "planned_results"): "Spark tries lost tasks again",
    ("spark/jobs.py", "result", "_from_file"): "Spark tries lost tasks again",
    ("spark/session.py", "join", "_stop"): "it looks up once in a second; " + SIGNALS,
    ("spark/session.py", "wait", "_close_gateway"): "the process was killed",
    ("spark/jobs.py", "get", "result"): "Java has the answer, or its end breaks the socket",
}  # fmt: skip

CONNECTING: Final = {
    "appliance/demo_run.py": "the demo's own PostgreSQL, on this machine",
    "applier/target/connection.py": "the one place: with a watch",
    "applier/target/statement_watch.py": "the watch's own, with answer_seconds",
    "applier/structure_maker.py": "without: an index takes its time; ended by `give_up`",
    "applier/target_health.py": "with answer_seconds",
    "fallback/slot_stream.py": "with a watch, which does not see the stream; `check` asks for it",
    "monitor/exporter.py": "with answer_seconds",
    "postgres/embedded.py": "the embedded PostgreSQL, on this machine",
    "postgres/bounded_connection.py": "bounded by itself (_WAIT_SECONDS)",
}
"""Modules that open connections to PostgreSQL; who uses a target calls `connection.connect`."""


def waits(tree: ast.AST, function: str = "") -> Iterator[tuple[str, str, int]]:
    """The calls that wait without a bound: what, in which function, in which line."""
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        function = tree.name
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute):
        name = tree.func.attr
        if name in BOUNDED_BY and not is_bounded(tree, BOUNDED_BY[name]):
            yield name, function, tree.lineno
    for child in ast.iter_child_nodes(tree):
        yield from waits(child, function)


def is_bounded(call: ast.Call, arguments: int | None) -> bool:
    named = {one.arg: one.value for one in call.keywords}
    bound = named.get("timeout")
    if bound is None and arguments is not None and len(call.args) >= arguments:
        bound = call.args[arguments - 1]
    return bound is not None and not (isinstance(bound, ast.Constant) and bound.value is None)


def unbounded() -> dict[tuple[str, str, str], int]:
    found = {}
    for place, tree in modules_with(rf"\.({'|'.join(BOUNDED_BY)})\("):
        if place.partition("/")[0] not in OTHERS:
            for name, function, line in waits(tree):
                found[place, name, function] = line
    return found


def test_every_wait_has_a_bound_or_a_reason() -> None:
    found = unbounded()
    assert {place: line for place, line in found.items() if place not in ALLOWED} == {}
    assert sorted(set(ALLOWED) - set(found)) == []  # a reason that is needed no more


def test_connections_are_opened_where_their_statements_get_a_bound() -> None:
    found = set()
    for place, tree in modules_with(r"\.connect\b"):
        if place.partition("/")[0] in OTHERS:
            continue
        for one in ast.walk(tree):
            if (
                isinstance(one, ast.Call)
                and isinstance(one.func, ast.Attribute)
                and one.func.attr == "connect"
                and ast.unparse(one.func.value).split(".")[0]
                in {"psycopg", "BoundedConnection", "Connection", "AsyncConnection"}
            ):
                found.add(place)
    assert found == set(CONNECTING)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(x): x.join()", [("join", "f", 1)]),
        ("def f(x): x.wait(None)", [("wait", "f", 1)]),
        ("def f(x): x.wait(timeout=None)", [("wait", "f", 1)]),
        ("def f(x): x.wait_for(g)", [("wait_for", "f", 1)]),
        ("def f(x): x.recv(7)", [("recv", "f", 1)]),
        ("def f(x): x.pgconn.exec_(y)", [("exec_", "f", 1)]),
        ("def f(x): x.join(3), x.wait(timeout=y), x.wait_for(g, 1), ', '.join(y)", []),
    ],
)
def test_what_counts_as_a_wait(text: str, found: list[tuple[str, str, int]]) -> None:
    assert list(waits(ast.parse(text))) == found
