"""Simulated tables as of an SCN, as Parquet files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from olr_pg.simulator.simulation import Simulation
from olr_pg.simulator.truth import tables_at
from tests.load.orders import OrderEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from random import Random

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import ColumnType, SimTable
    from olr_pg.simulator.model.transactions import Transaction
    from olr_pg.simulator.sessions.workload import RandomWorkload
    from olr_pg.simulator.simulated_files import Summary
    from olr_pg.simulator.truth import Rows


class Source(NamedTuple):
    """A simulated source.

    Attributes:
        folder: with ``logs``, ``dictionary.json`` and ``final.jsonl``.
        transactions: in commit order.
    """

    folder: Path
    summary: Summary
    transactions: list[Transaction]

    def scn(self, share: float) -> int:
        """The commit SCN at that share of the transactions."""
        return self.transactions[int(len(self.transactions) * share)].commit_scn

    def open_since(self, scn: int) -> int:
        """The begin SCN of the oldest transaction that was open at `scn`."""
        begins = [t.begin_scn for t in self.transactions if t.begin_scn <= scn < t.commit_scn]
        return min([scn, *begins])

    def rows(self, scn: int) -> dict[str, Rows]:
        """Every table's rows as of `scn`."""
        return tables_at(self.summary.tables, self.transactions, scn)

    def write_tables(self, folder: Path, scn: int, row_group: int = 18) -> Path:
        """Every table as of `scn`.

        Args:
            row_group: rows of a part; a task each of loads and verifications, which has its price.
        """
        folder.mkdir()
        metadata: dict[bytes | str, bytes | str] = {
            "olr_pg.scn": str(scn),
            "olr_pg.start_scn": str(self.open_since(scn)),
        }
        for name, rows in self.rows(scn).items():
            table = next(one for one in self.summary.tables if one.full_name == name)
            write_table(folder / f"{name}.parquet", table, rows.items(), metadata, row_group)
        return folder


def order_entry(rng: Random, shape: DatabaseShape, _: int) -> OrderEntry:
    """The workload of `tests.load.orders`."""
    return OrderEntry(rng, shape.logging)


def simulated(
    seed: int,
    folder: Path,
    size: int,
    shape: DatabaseShape,
    workload: Callable[[Random, DatabaseShape, int], RandomWorkload] = order_entry,
) -> Source:
    """Simulate a source."""
    (folder / "logs").mkdir(parents=True)
    simulation = Simulation(seed, folder, shape, workload)
    simulation.run(size)
    summary = simulation.write()
    return Source(folder, summary, simulation.committed())


def write_table(
    path: Path,
    table: SimTable,
    rows: Iterable[tuple[str, dict[int, Cell | None]]],
    metadata: dict[bytes | str, bytes | str],
    row_group: int,
) -> None:
    """The Parquet file of one table."""
    ordered = sorted(rows)
    fields = [pa.field("ROWID", pa.string())]
    arrays: list[Any] = [pa.array([rowid for rowid, _ in ordered], pa.string())]
    for number, column in enumerate(table.columns):
        kind = arrow_type(column.type)
        values = [value_of(column.type, kind, image.get(number)) for _, image in ordered]
        fields.append(pa.field(column.name, kind))
        arrays.append(pa.array(values, kind))
    data = pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata))
    pq.write_table(data, path, row_group_size=row_group)


def arrow_type(kind: ColumnType) -> Any:
    code, scale = kind.type_code, kind.scale or 0
    if code == 2:
        return pa.decimal128(kind.precision, scale) if kind.precision else pa.string()
    plain = {23: pa.binary(), 12: pa.timestamp("s"), 100: pa.float32(), 101: pa.float64()}
    if code in (180, 181) and scale <= 6:
        return pa.timestamp("us", "UTC" if code == 181 else None)
    return plain.get(code, pa.string())


def value_of(kind: ColumnType, arrow: Any, cell: Cell | None) -> Any:
    if cell is None:
        return None
    if kind.type_code == 23:
        return cell.raw
    if kind.type_code == 2:
        return Decimal(cell.json) if pa.types.is_decimal(arrow) else cell.json
    value = json.loads(cell.json)
    if not pa.types.is_timestamp(arrow):
        return value
    when = datetime.fromisoformat(value)
    return when.astimezone(UTC) if arrow.tz else when
