"""Writes the files of a database that executes a script, like those of `simulate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.model.shop_inventory import write_dictionary
from olr_pg.simulator.simulated_files import Summary, log_files, prepare_directory, write_lines
from olr_pg.simulator.sql.database import SqlDatabase
from olr_pg.simulator.sql.scripts import run_script
from olr_pg.simulator.table_files import write_rows
from olr_pg.simulator.truth import ddl_lines, tables_at, truth_lines
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.sql.scripts import Step
    from olr_pg.simulator.truth import Rows


def simulate_script(
    seed: int, out_dir: Path, shape: DatabaseShape, steps: Sequence[Step], recorded_from: int
) -> Summary:
    """Execute a script; write logs, dictionary, truth and tables of its recorded part.

    Args:
        recorded_from: the number of the first recorded step. The dictionary contains the tables
            that exist before it.

    Raises:
        OlrPgError: 8052 a statement did not have the expected result, 8002 the directory cannot be
            used.
    """
    directory = prepare_directory(out_dir)
    logs: list[Path] = []
    database = SqlDatabase(seed, shape, log_files(directory / "logs", logs))
    run_script(database, steps[:recorded_from])
    start = database.begin_recording()
    tables = [table.sim for table in database.tables.values()]
    columns = {table: table.columns for table in tables}
    write_dictionary(start, directory)
    for table in tables:
        write_rows(directory / "tables", table, _lines(table, table.at_start), start.scn)
    for log in logs:  # a decoder reads only the redo after the dictionary's SCN
        log.unlink()
    logs.clear()
    run_script(database, steps[recorded_from:])
    database.shut_down()
    committed = database.take_committed()
    write_lines(directory / "truth.jsonl", truth_lines(committed))
    write_lines(directory / "ddl.jsonl", ddl_lines(committed))
    rows = tables_at(tables, committed, database.instance.scn)
    existing = {table.sim for table in database.tables.values()}
    for table in tables:
        # The name of a dropped table can be that of a newer one, which has other columns.
        if table in existing and len(columns[table]) <= len(table.columns):
            own = rows[table.full_name]
            write_rows(directory / "final", table, _lines(table, own), database.instance.scn)
    changes = dict.fromkeys(DmlKind, 0)
    for transaction in committed:
        for change in transaction.delivered:
            changes[change.kind] += 1
    return Summary(
        *(seed, shape, start, sum(bool(one.delivered) for one in committed), changes),
        *({name: len(own) for name, own in rows.items()}, tuple(tables)),
    ).with_logs(logs)


def _lines(table: SimTable, rows: Rows) -> list[tuple[str, list[Cell | None]]]:
    """Return rows with all columns, in the order of their ROWIDs or keys."""
    return [
        ("" if table.index_organised else identity,
         [image.get(number) for number in range(len(table.columns))])
        for identity, image in sorted(rows.items())
    ]  # fmt: skip
