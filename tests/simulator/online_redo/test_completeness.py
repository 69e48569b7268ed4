"""At any instant, the online logs and the archive decode to a prefix of the truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.online_redo.online_database import OnlineOptions
from olr_pg.simulator.online_redo.online_files import LwnPosition, Write
from olr_pg.simulator.online_redo.written_redo import FlushStyle
from olr_pg.simulator.writer.log_file import OsHeader
from tests.simulator.online_redo.completeness import OnlineContent, TruthPrefix, read_online_log
from tests.simulator.online_redo.played import Playing, Source
from tests.simulator.reader import parse_log

INSTANTS = 12


@pytest.mark.parametrize("seed", range(2))
def test_what_is_on_disk_decodes_to_a_prefix_of_the_truth(
    shop: Source, tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    prefix = TruthPrefix(shop.truth, shop.logs)
    options = OnlineOptions(style=FlushStyle(pieces=6), archive_lag=2)
    playing = Playing(shop, tmp_path / "source", seed, options)
    found = set[int]()
    for number, step in enumerate(playing.play()):
        if isinstance(step, Write) and rng.random() < INSTANTS / 100:
            lines = decoded(playing, tmp_path / str(number), rng)
            low = prefix.complete(playing.database.flushed())
            high = prefix.complete(playing.database.reached())
            assert shop.truth.startswith(lines)
            assert len(low) <= len(lines) <= len(high)
            found.add(len(lines))
    assert len(found) > 3


def decoded(playing: Playing, folder: Path, rng: Random) -> bytes:
    """Decode copies of the logs, the newest one up to its last whole LWN."""
    folder.mkdir()
    redo, size = playing.source.redo, playing.source.redo.block_size
    for path in playing.archived():
        (folder / path.name).write_bytes(path.read_bytes())
    archived = {parse_log(path.read_bytes()).header.sequence for path in playing.archived()}
    online = dict[int, tuple[OnlineContent, bytes]]()
    for group in playing.database.control.groups.values():
        # While a header is torn, another member is read.
        files = map(playing.file, rng.sample(group.written, len(group.written)))
        contents = ((read_online_log(redo, data), data) for data in files)
        found = next(((content, data) for content, data in contents if content), None)
        if found is not None and found[0].header.sequence not in archived:
            online[found[0].header.sequence] = found
    for _, (content, data) in sorted(online.items()):
        next_scn = min(content.header.next_scn, 1 << 47)
        header = replace(content.header, nab=content.end, next_scn=next_scn)
        blocks = OsHeader(content.end - 1).image(redo) + header.image(redo)
        name = f"arch1_{header.sequence}_{header.resetlogs}.dbf"
        (folder / name).write_bytes(blocks + data[2 * size : content.end * size])
        if content.header.next_scn == SCN_NONE:
            break  # the next one may have been begun already
    snapshot = load_snapshot(str(playing.source.folder / "dictionary.json"))
    render = JsonLines(snapshot.database)
    return b"".join(map(render.render, decode_logs(snapshot, [str(folder)])))


def test_the_prefix_ends_with_the_last_commit_that_is_there(shop: Source) -> None:
    prefix = TruthPrefix(shop.truth, shop.logs)
    assert prefix.complete({1: LwnPosition(0, 0, 0)}) == b""
    assert prefix.complete({1: LwnPosition(1 << 40, 0, 0)}) == shop.truth


def test_an_unused_or_torn_log_is_none(shop: Source) -> None:
    size = shop.redo.block_size
    assert read_online_log(shop.redo, bytes(20 * size)) is None
    data = bytearray(shop.logs[0].data)
    content = read_online_log(shop.redo, bytes(data))
    assert content is not None
    assert content.end == content.header.nab
    data[size + 200] ^= 1
    assert read_online_log(shop.redo, bytes(data)) is None
