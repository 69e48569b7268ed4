"""The forms of redo that the simulator writes where no real bytes are known (docs/simulator.md)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from olr_pg.decoding.split import open_for_decoding
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.redo.dump.log_text import DumpFilter, log_records
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.cells import BLOB
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.model.column_types import lob_type, number_type
from olr_pg.simulator.model.lobs import LobCell, LobStorage
from olr_pg.simulator.model.tables import SimColumn
from olr_pg.simulator.sessions.placement import TableSpec
from olr_pg.simulator.sessions.workload import LobUse, LobWorkload
from olr_pg.simulator.simulated_files import prepare_directory
from olr_pg.simulator.simulation import Simulation
from tests.replicator.decoded_seeds import Source
from tests.replicator.test_decode_truth import check_same

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from random import Random

    from olr_pg.redo.record_view import Fields, Vector

SIZE: Final = 3_000_000
LOB_SIZE_MAX: Final = 100_000
PAGE_AT: Final = 36
"""Where the bytes of a page begin in the first field of a 19.1."""

BASIC_PAGES: Final = {8192: 8132, 16_384: 16_324, 32_768: 32_708}
"""values-and-lobs §18.4."""

INFO, LOAD_DATA, ZERO, FILL = 1, 4, 5, 6
DATA_PAGE: Final = 0x20
"""Codes of KDLI items, and the type of a block in KDLI common."""


class Forms(LobWorkload):
    """LOBs outside the row, in blocks of every size, and SECUREFILE ones."""

    def tables(self) -> list[TableSpec]:
        """Three tables of BASICFILE LOBs, one of SECUREFILE ones."""
        outside = [LobStorage(BLOB, False, False, size) for size in BASIC_PAGES]
        return [self._of_storage(at, one) for at, one in enumerate([*outside, LobStorage(BLOB)])]

    def _of_storage(self, number: int, storage: LobStorage) -> TableSpec:
        columns = (
            SimColumn("ID", number_type(12, 0), nullable=False),
            SimColumn("IMAGE", lob_type(storage, LOB_SIZE_MAX)),
        )
        return TableSpec("DOCS", f"T{number}", columns, (0,), self._logging[0])


@dataclass(frozen=True)
class Made:
    """A simulated database; `folder` has its logs and dictionary."""

    simulation: Simulation
    folder: Path

    def vectors(self) -> Iterator[Vector]:
        """Every vector, as the dump sees it."""
        for path in self.simulation.logs:
            for record in log_records(open_for_decoding(str(path)), DumpFilter()):
                yield from record.vectors

    def storage_of(self, dataobj: int) -> LobStorage | None:
        """Of a LOB segment."""
        for table in self.simulation.containers[0].tables:
            for lob in table.lobs.values():
                if dataobj in {segment.dataobj for segment in lob.segments}:
                    return lob.storage
        return None

    def pages(self) -> Iterator[tuple[LobStorage, Fields]]:
        """The 19.1 of BASICFILE LOB pages."""
        for vector in self.vectors():
            if vector.opcode == 0x1301:
                storage = self.storage_of(vector.fields.number(1, 0, 4))
                if storage is not None:
                    yield storage, vector.fields

    def new_pages_in_place(self) -> Iterator[list[int]]:
        """The codes of the items of each 26.2 of a page, the first byte of each field."""
        for vector in self.vectors():
            if vector.opcode == 0x1A02 and vector.fields.number(2, 1, 1) == DATA_PAGE:
                yield [vector.fields.number(at, 0, 1) for at in range(3, vector.fields.count + 1)]


def make(folder: Path, redo: RedoFormat, *, unproven: bool = False) -> Made:
    shape = DatabaseShape(redo, lobs=LobUse.WHOLE, unproven=unproven)

    def workload(rng: Random, shape: DatabaseShape, _container: int) -> Forms:
        return Forms(rng, shape.logging, lobs=shape.lobs)

    simulation = Simulation(11, prepare_directory(folder), shape, workload)
    simulation.run(SIZE)
    simulation.write()
    return Made(simulation, folder)


@pytest.fixture(scope="module", params=[("11.2", True), ("19", False), ("23", False)], ids=str)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    release, big_endian = request.param
    return make(tmp_path_factory.mktemp("forms"), RedoFormat(COMPATIBLE[release], big_endian))


@pytest.fixture(scope="module")
def unproven(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("forms"), RedoFormat(), unproven=True)


def decoded_as_is_true(made: Made) -> None:
    source = Source(made.folder, load_snapshot(str(made.folder / "dictionary.json")))
    decoded = source.lines(decode_logs(source.snapshot, [str(made.folder / "logs")]))
    check_same(decoded, source.truth, str(made.folder))


def test_what_is_written_is_decoded_to_the_truth(made: Made) -> None:
    decoded_as_is_true(made)


def test_a_basicfile_page_names_the_type_of_its_block(made: Made) -> None:
    pages = list(made.pages())
    assert len(pages) > 20
    # As that of a table's block does (redo-format §6.2), with another type than its 6.
    assert {(fields.count, fields.bytes(2)) for _, fields in pages} == {(2, b"\x28")}


def test_a_basicfile_page_holds_what_openlogreplicator_takes_it_to(made: Made) -> None:
    found = {(storage.block_size, fields.size(1) - PAGE_AT) for storage, fields in made.pages()}
    assert found == set(BASIC_PAGES.items())


class IndexRow(NamedTuple):
    """A change of the LOB index row of page 0: its opcode and the bytes of the value it tells."""

    opcode: int
    size: int
    pages_before: int


def sizes_told(made: Made) -> dict[bytes, list[IndexRow]]:
    """What is told of the size of each LOB outside the row, in redo order."""
    found: dict[bytes, list[IndexRow]] = defaultdict(list)
    pages: dict[bytes, int] = defaultdict(int)
    page_bytes: dict[bytes, int] = {}
    key = b""
    for vector in made.vectors():
        fields = vector.fields
        if vector.opcode == 0x1301 and made.storage_of(fields.number(1, 0, 4)):
            lob = fields.bytes(1)[4:14]
            pages[lob] += 1
            page_bytes[lob] = fields.size(1) - PAGE_AT
        elif vector.opcode == 0x0501:
            key = fields.bytes(5)
        elif vector.opcode in (0x0A02, 0x0A12):
            # An update has the key in its undo.
            is_new = vector.opcode == 0x0A02
            key, data = (fields.bytes(3), fields.bytes(4)) if is_new else (key, fields.bytes(3))
            lob = key[1:11]
            if len(key) == 16 and key[:1] == b"\x0a" and int.from_bytes(key[12:]) == 0:
                full, rest = int.from_bytes(data[4:8]), int.from_bytes(data[8:10])
                size = full * page_bytes.get(lob, 0) + rest
                found[lob].append(IndexRow(vector.opcode, size, pages[lob]))
    return found


def test_a_lob_outside_the_row_has_its_index_row_first_and_its_size_last(made: Made) -> None:
    contents = {
        b"\0\0\0\1" + cell.stored.number.to_bytes(6): len(cell.content)
        for table in made.simulation.containers[0].tables
        for row in table.live
        if table.name != "T3" and isinstance(cell := row.cells[1], LobCell)
    }
    told = sizes_told(made)
    assert len([size for size in contents.values() if size]) > 5
    for lob, size in contents.items():
        first, *more = told[lob]
        assert first == IndexRow(0x0A02, 0, 0)
        assert [(row.opcode, row.size) for row in more] == ([(0x0A12, size)] if size else [])


def test_a_page_in_place_is_written_by_its_info_and_its_bytes(made: Made) -> None:
    items = list(made.new_pages_in_place())
    assert items
    # An undone one has the info alone.
    assert {tuple(one) for one in items} <= {(INFO, FILL), (INFO, ZERO), (INFO,)}


def test_the_forms_that_are_not_proven_are_decoded_as_well(unproven: Made) -> None:
    decoded_as_is_true(unproven)
    assert {fields.count for _, fields in unproven.pages()} == {1, 2}
    assert LOAD_DATA in {one[0] for one in unproven.new_pages_in_place()}
    sizes = [rows for rows in sizes_told(unproven).values() if rows[0].pages_before]
    assert sizes
    assert all(rows[0].opcode == 0x0A02 and rows[0].size for rows in sizes)
