"""Columns whose bytes are not text of the set that the database declares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from olr_pg.dictionary.containers import join_containers
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.lob_delivery import LobDelivery, delivered_charset_id, lob_delivery
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.dictionary.true_charsets import idle_patterns, is_explicit, with_true_charsets
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("ID", "NAME", "PADDED", "NOTE", "NATIONAL", "IMAGE")


def table(charset_id: int = 1, owner: str = "APP") -> Table:
    columns = (
        Column("ID", 1, 1, 1, 2, 22, nullable=False),
        Column("NAME", 2, 2, 2, 1, 40, charset_id=charset_id, charset_form=1),
        Column("PADDED", 3, 3, 3, 96, 8, charset_id=charset_id, charset_form=1),
        Column("NOTE", 4, 4, 4, 112, 4000, charset_id=charset_id, charset_form=1),
        Column("NATIONAL", 5, 5, 5, 1, 40, charset_id=2000, charset_form=2),
        Column("IMAGE", 6, 6, 6, 113, 4000),
    )
    return Table(owner, "T", 7, 7, columns, key_kind=KeyKind.PRIMARY, key=(1,))


def snapshot(charset: str = "US7ASCII", *tables: Table) -> Snapshot:
    return Snapshot(5, Database("D", charset=charset), tables or (table(),))


def sets_of(found: Table) -> dict[str, int | None]:
    return {one.name: one.charset_id for one in found.columns if is_explicit(one)}


def test_the_first_matching_pattern_applies_to_text_in_the_database_set() -> None:
    sets = [("app.t.name", "CL8MSWIN1251"), ("APP.T.PADDED", "US7ASCII"), ("APP.T", "ZHS16GBK")]
    found = with_true_charsets(snapshot(), sets)
    assert sets_of(found.tables[0]) == {"NAME": 171, "NOTE": 852}
    assert found.database.charset == "US7ASCII"
    # They replace the sets that a dictionary has.
    again = with_true_charsets(found, [("*.NOTE", "WE8MSWIN1252")])
    assert sets_of(again.tables[0]) == {"NOTE": 178}
    assert with_true_charsets(again, []) == snapshot()


def test_a_clob_is_delivered_as_it_is_stored_whatever_its_true_set() -> None:
    (found,) = with_true_charsets(snapshot(), [("*", "ZHS16GBK")]).tables
    note = next(one for one in found.columns if one.name == "NOTE")
    assert lob_delivery(note) is LobDelivery.CHARSET
    assert delivered_charset_id(note) == 852


def test_the_dictionary_itself_is_read_as_declared() -> None:
    sys = table(owner="SYS")
    assert with_true_charsets(snapshot("US7ASCII", sys), [("*", "WE8MSWIN1252")]).tables == (sys,)


def test_a_declared_set_of_several_bytes_is_refused() -> None:
    utf8 = snapshot("AL32UTF8", table(873))
    assert (
        with_true_charsets(utf8, [("*", "AL32UTF8"), ("OTHER.*", "WE8DEC")]).tables == utf8.tables
    )
    # One RAW can hold the bytes of VARCHAR2 and CHAR.
    found = with_true_charsets(utf8, [("*.NAME", "WE8MSWIN1252"), ("*.PADDED", "CL8MSWIN1251")])
    assert sets_of(found.tables[0]) == {"NAME": 178, "PADDED": 171}
    with pytest.raises(OlrPgError) as caught:
        with_true_charsets(utf8, [("*", "WE8MSWIN1252")])
    assert caught.value.code == Code.CHARACTER_SET_NOT_REPLACEABLE
    assert caught.value.where == {"table": "APP.T", "column": "NOTE"}


@pytest.mark.parametrize(
    ("code", "length", "characters", "is_possible"),
    [
        (1, 2_000, 500, True),
        (1, 2_001, None, False),
        (96, 1_999, None, True),
        (96, 8, 8, True),
        (96, 32, 8, False),  # CHAR(8 CHAR): Oracle pads it by counting characters
        (96, 2_000, None, False),  # perhaps CHAR(500 CHAR)
        (8, 0, None, False),
        (112, 4_000, None, False),
    ],
)
def test_which_columns_of_a_database_with_several_bytes_can_have_another_set(
    code: int, length: int, characters: int | None, is_possible: bool
) -> None:
    column = Column(
        "C", 1, 1, 1, code, length, charset_id=873, charset_form=1, char_length=characters
    )
    utf8 = snapshot("AL32UTF8", Table("APP", "T", 7, 7, (column,)))
    sets = [("*", "WE8MSWIN1252")]
    if is_possible:
        assert sets_of(with_true_charsets(utf8, sets).tables[0]) == {"C": 178}
        return
    with pytest.raises(OlrPgError) as refused:
        with_true_charsets(utf8, sets)
    assert refused.value.code == Code.CHARACTER_SET_NOT_REPLACEABLE


def test_a_file_keeps_the_sets(tmp_path: Path) -> None:
    path = str(tmp_path / "dictionary.json")
    found = with_true_charsets(snapshot(), [("*.NAME", "CL8MSWIN1251")])
    write_snapshot(found, path)
    assert load_snapshot(path) == found
    text = (tmp_path / "dictionary.json").read_text()
    # A file that was exported earlier gets them by hand.
    write_snapshot(snapshot(), path)
    plain = (tmp_path / "dictionary.json").read_text()
    assert "true_charsets" not in plain
    by_hand = plain.replace('"charset":', '"true_charsets":{"*.NAME":"CL8MSWIN1251"},"charset":')
    (tmp_path / "dictionary.json").write_text(by_hand)
    assert load_snapshot(path) == found
    (tmp_path / "dictionary.json").write_text(text.replace("CL8MSWIN1251", "KLINGON"))
    with pytest.raises(OlrPgError) as caught:
        load_snapshot(path)
    assert caught.value.code == Code.CHARACTER_SET_UNSUPPORTED


def test_containers_keep_theirs() -> None:
    one, other = (
        replace(
            snapshot(), database=Database("D", con_id=number, con_name=f"P{number}", dbid=number,
                                          charset="US7ASCII")
        )
        for number in (3, 4)
    )  # fmt: skip
    joined = with_true_charsets(join_containers([one, other]), [("P3.*", "WE8MSWIN1252")])
    assert [bool(sets_of(found)) for found in joined.tables] == [True, False]
    assert [bool(sets_of(found)) for m in joined.members for found in m.tables] == [True, False]


def test_patterns_that_match_no_text_are_named() -> None:
    sets = [("*.NAME", "WE8DEC"), ("APP.T.ID", "WE8DEC"), ("APP.TT.*", "WE8DEC")]
    assert idle_patterns([table()], sets) == ["APP.T.ID", "APP.TT.*"]
