"""Every place that makes files is known, and whether rows are in them.

Rows go into files through `files.sealed` alone, which encrypts them while there is a key. A module
that begins to make files is to be put into one of the two lists: here somebody thinks about it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from tests.package_trees import PACKAGE, modules_with

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_OF_THE_APPLIANCE: Final = ("bench", "proving", "simulator")

ROWS: Final = {
    "capture/log_tail.py": "copies of online logs",
    "decoding/incidents.py": "redo of a failure",
    "decoding/spill.py": "mapped files without a name, none of them while there is a key",
    "files/waiting_rows.py": "a file without a name; each piece is encrypted",
    "load/verification/continuous.py": "keys up to which tables were compared, and different rows",
    "oracle/vault.py": "copies of archived logs",
    "replicator/recovery/image_files.py": "what open transactions changed; the manifest has no row",
}
"""Through `files.sealed`."""

NO_ROWS: Final = {
    "appliance/created_tables.py": "names of tables, and SCNs",
    "appliance/data_lock.py": "the lock file is empty",
    "appliance/demo_run.py": "the demo's configuration and rows, which are simulated",
    "appliance/encryption.py": "the key's fingerprint",
    "appliance/container_names.py": "names of containers",
    "applier/target/applied_file.py": "SCNs of tables",
    "capture/lineage.py": "incarnations",
    "capture/redo_threads.py": "numbers of redo threads",
    "config/changed_tables.py": "names of tables",
    "dictionary/change_history.py": "definitions of tables",
    "dictionary/table_list.py": "a database in memory",
    "dictionary/snapshot_file.py": "definitions of tables",
    "files/durable.py": "an empty file of some size, and what its callers say",
    "files/owned.py": "what its callers say",
    "files/result_files.py": "results of tasks: none while there is a key (spark.session)",
    "files/sealed.py": "the way of rows into files",
    "java/runtime.py": "a script that starts Java",
    "kernels/pack.py": "compiled kernels",
    "monitor/history.py": "figures and names of tables",
    "monitor/proofs.py": "SCNs and names of tables",
    "monitor/service.py": "addresses of the status page",
    "postgres/embedded.py": "PostgreSQL's settings; its tables are a target",
    "replicator/kernel_warmup.py": "the empty lock of whoever compiles",
    "server/checkpoint.py": "SCNs",
    "schema/statement.py": "statements that `olr-pg schema` was asked for",
    "spark/jobs.py": "see files/result_files.py",
    "spark/session.py": "settings of Java; a directory, in which Spark encrypts what it writes",
}
ASKED_FOR: Final = {
    "cli/decode.py": "the terminal",
    "cli/dump.py": "a masked incident",
    "cli/init.py": "a configuration",
    "cli/migration/assess.py": "a report",
    "load/verification/differences.py": "rows that differ, into the file of --details",
    "rendering/parquet_files.py": "rows, into the directory that somebody named",
}
"""By a command that prints or writes rows or reports for whom asks for them; no `context.data`."""

PLAIN_UNTIL_WHOLE: Final = {"oracle/transport/local_copy.py"}
"""A log on its way into the vault, which encrypts it when it has come: docs/security.md says so."""

WRITERS: Final = {
    "GrowingFile", "NamedTemporaryFile", "ParquetWriter", "ResultFile", "ResultFiles",
    "TemporaryFile", "fdopen", "mkdtemp", "mkstemp", "nameless_file", "open_plain", "replace_file",
    "row_file", "sealed_bytes", "write_bytes", "write_state", "write_text", "written_whole",
}  # fmt: skip


def makes_files(tree: ast.AST) -> Iterator[str]:
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        texts = [one.value for one in ast.walk(call) if isinstance(one, ast.Constant)]
        modes = {text for text in texts if isinstance(text, str) and len(text) < 5}
        if name in WRITERS or (
            name == "open" and modes & {"w", "wb", "a", "ab", "x", "xb", "r+b", "w+b", "w:gz"}
        ):
            yield name
        if name == "connect" and isinstance(function, ast.Attribute):
            owner = function.value
            if isinstance(owner, ast.Name) and owner.id == "sqlite3":
                yield name


def test_each_module_that_makes_files_is_known() -> None:
    found = {
        place
        for place, tree in modules_with("|".join((*WRITERS, r"\bopen\b", r"sqlite3\.connect")))
        if place.partition("/")[0] not in NOT_OF_THE_APPLIANCE and any(makes_files(tree))
    }
    listed = ROWS.keys() | NO_ROWS.keys() | ASKED_FOR.keys() | PLAIN_UNTIL_WHOLE
    assert sorted(found - listed) == [], "say whether rows are in its files"
    assert sorted(listed - found) == []


def test_rows_go_through_the_one_module() -> None:
    for name in ROWS:
        assert "olr_pg.files.sealed" in (PACKAGE / name).read_text("utf-8"), name
