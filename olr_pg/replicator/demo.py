"""``olr-pg demo``: a generated order-entry source, replicated into an embedded PostgreSQL.

The source is made by the simulator, which also knows the rows that its tables hold at the end, so
that source and target are compared row by row.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import sql
from rich.console import Console
from rich.table import Table as Grid

from olr_pg.applier.embedded import EmbeddedPostgres, start_embedded
from olr_pg.config.load import load_config
from olr_pg.replicator.appliance import run_appliance
from olr_pg.simulator.simulate import Summary, simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.cells import Cell
    from olr_pg.simulator.tables import SimColumn, SimTable

DEMO_SEED: Final = 42
DEMO_SIZE: Final = 300_000
NUMBER: Final = 2
RAW: Final = 23
DATES: Final = frozenset((12, 180, 181))


class TableOutcome(NamedTuple):
    """How a table came over. `target_rows` equals `source_rows` and `identical` is true, or not."""

    name: str
    source_rows: int
    target_rows: int
    identical: bool


def run_demo(
    directory: Path | None = None,
    *,
    seed: int = DEMO_SEED,
    size: int = DEMO_SIZE,
    keep_running: bool = True,
    console: Console | None = None,
) -> int:
    """Generate, replicate, compare, and say where to look.

    Args:
        directory: made if it is not there, must be empty; None for a new one in the temporary
            folder.
        seed: of the generated source.
        size: redo to generate, in bytes, about.
        keep_running: leave PostgreSQL running, for a look at the tables.
        console: where to print; None for standard output.

    Returns:
        0 if every table is identical, else 1.

    Raises:
        OlrPgError: a part could not do its work.
    """
    console = console or Console()
    folder = directory or Path(tempfile.mkdtemp(prefix="olr-pg-demo-"))
    console.print(f"Generating archived logs of an Oracle database in {folder} …", highlight=False)
    source = simulate(seed, folder, workload="orders", size=size)
    console.print(
        f"{len(source.logs)} logs, {source.log_bytes / 1024:.0f} KiB,"
        f" {source.transactions} committed transactions, {sum(source.changes.values())} changes."
        " Replicating …",
        highlight=False,
    )
    config = load_config(_write_config(folder))
    cluster = start_embedded(folder / "data" / "postgres")
    try:
        run_appliance(config, once=True, apply=True)
        outcomes = compare_tables(source, cluster.connect_string)
    except BaseException:
        cluster.stop()
        raise
    console.print(_outcome_grid(outcomes))
    _print_places(console, folder, cluster, keep_running=keep_running)
    if not keep_running:
        cluster.stop()
    return 0 if all(outcome.identical for outcome in outcomes) else 1


def _write_config(folder: Path) -> Path:
    path = folder / "config.json"
    document = {
        "context": {"data": str(folder / "data")},
        "source": {
            "kind": "offline",
            "dictionary": str(folder / "dictionary.json"),
            "logs": str(folder / "logs"),
        },
        "target": {"address": "127.0.0.1:0"},
        "apply": {
            "connect-string": "embedded",
            "tables": "SELECT OWNER, TABLE_NAME FROM USER_TABLES",
            "create-tables": True,
        },
        "spark": {"master": "local[2]"},
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return path


def compare_tables(source: Summary, connect_string: str) -> list[TableOutcome]:
    """Every table of the source against the target's of the same name, as bags of rows."""
    with psycopg.connect(connect_string) as connection:
        return [_compare(connection, source, table) for table in source.tables]


def _compare(connection: psycopg.Connection[Any], source: Summary, table: SimTable) -> TableOutcome:
    query = sql.SQL("SELECT {} FROM {}").format(
        sql.SQL(", ").join(sql.Identifier(column.name.lower()) for column in table.columns),
        sql.Identifier(table.owner.lower(), table.name.lower()),
    )
    target = Counter(
        tuple(_target_value(value) for value in row) for row in connection.execute(query)
    )
    rows = source.rows[table.full_name].values()
    expected = Counter(
        _source_row(table.columns, [row[number] for number in sorted(row)]) for row in rows
    )
    return TableOutcome(
        table.full_name, expected.total(), target.total(), identical=expected == target
    )


def _target_value(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) else value


def _source_row(columns: Sequence[SimColumn], row: Sequence[Cell | None]) -> tuple[Any, ...]:
    return tuple(
        None if cell is None else _source_value(column.type.type_code, cell)
        for column, cell in zip(columns, row, strict=True)
    )


def _source_value(type_code: int, cell: Cell) -> Any:
    """The value as psycopg would return it; the workload has no other types."""
    if type_code == NUMBER:
        return Decimal(cell.json)
    if type_code == RAW:
        return cell.raw
    text = json.loads(cell.json)
    return datetime.fromisoformat(text) if type_code in DATES else text


def _outcome_grid(outcomes: Sequence[TableOutcome]) -> Grid:
    grid = Grid(title="Replicated")
    grid.add_column("Table")
    for heading in ("Source rows", "Target rows"):
        grid.add_column(heading, justify="right")
    grid.add_column("Identical")
    for outcome in outcomes:
        grid.add_row(
            outcome.name,
            str(outcome.source_rows),
            str(outcome.target_rows),
            "yes" if outcome.identical else "NO",
        )
    return grid


def _print_places(
    console: Console, folder: Path, cluster: EmbeddedPostgres, *, keep_running: bool
) -> None:
    lines = [
        f"Logs, dictionary, truth, configuration: {folder}",
        (
            f"The same without Spark or a database: olr-pg decode --dictionary"
            f" {folder / 'dictionary.json'} {folder / 'logs'}"
        ),
    ]
    if keep_running:
        lines += [
            (
                f"PostgreSQL: host=127.0.0.1 port={cluster.port} user=postgres dbname=postgres"
                f" (password in {cluster.directory / 'password'})"
            ),
            f"Stop it with: kill -INT {cluster.pid}",
        ]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
