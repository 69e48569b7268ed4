"""What the sections say together: targets, tables, policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.config.reading import ConfigError, parse_config
from olr_pg.config.source_section import OfflineSource
from olr_pg.datatypes.policies import Policies

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config

SOURCE = {"kind": "offline", "dictionary": "d.json", "logs": "archive"}
APPLY = {"connect-string": "embedded", "tables": ["SHOP.ORDERS", "HR.PEOPLE"]}


def parse(folder: Path, **sections: Any) -> Config:
    return parse_config({"source": SOURCE, **sections}, folder, {}, file="c.json")


def test_listed_tables_are_a_query_and_a_query_is_no_list(tmp_path: Path) -> None:
    listed = parse(tmp_path, apply=APPLY).apply
    assert listed is not None
    assert [str(one) for one in listed.tables] == APPLY["tables"]
    assert "ORDERS" in listed.table_query
    assert "PEOPLE" in listed.table_query
    query = "SELECT owner, table_name FROM all_tables"
    asked = parse(tmp_path, apply=APPLY | {"tables": query}).apply
    assert asked is not None
    assert (asked.tables, asked.table_query) == (query, query)


def test_the_embedded_database_is_a_word(tmp_path: Path) -> None:
    embedded = parse(tmp_path, apply=APPLY).apply
    other = parse(tmp_path, apply=APPLY | {"connect-string": "postgresql://h/d"}).apply
    assert embedded is not None
    assert other is not None
    assert (embedded.embedded, other.embedded) == (True, False)


def test_policies_are_those_of_the_values(tmp_path: Path) -> None:
    chosen = {"undecodable": "hex", "char-blanks": True}
    apply = parse(tmp_path, apply=APPLY | {"policies": chosen}).apply
    assert apply is not None
    assert apply.value_policies == Policies(undecodable="hex", char_blanks=True)
    default = parse(tmp_path, apply=APPLY).apply
    assert default is not None
    assert default.value_policies == Policies()


LIVE = {"user": "u", "password": "p", "server": "h:1521/S"}


def transport(**keys: Any) -> dict[str, Any]:
    return {"source": LIVE | {"vault": {"directory": "v"}, "transport": keys}}


@pytest.mark.parametrize(
    ("key", "sections"),
    [
        ("apply.batch-changes", {"apply": APPLY | {"batch-changes": 0}}),
        ("apply.workers", {"apply": APPLY | {"workers": 257}}),
        ("apply.consistency", {"apply": APPLY | {"consistency": "eventual"}}),
        ("", {"apply": APPLY, "target": [{"name": "a"}, {"name": "b"}]}),
        ("apply.connect-string", {"apply": APPLY | {"connect-string": ""}}),
        ("apply.tables", {"apply": APPLY | {"tables": ["!SHOP.LOGS"]}}),
        ("apply.tables[0]", {"apply": APPLY | {"tables": ["SHOP.[O"]}}),
        ("apply.tables[0]", {"apply": APPLY | {"tables": ["SHOP.%"]}}),
        ("source.dictionary", {"source": SOURCE | {"dictionary": "~no such user/d.json"}}),
        ("source.logs", {"source": SOURCE | {"logs": 5}}),
        ("source.logs", {"source": SOURCE | {"logs": []}}),
        ("source", {"source": SOURCE | {"redo": "online"}}),
        ("source", {"source": SOURCE | {"online-logs": "online"}}),
        ("source", {"source": LIVE | {"containers": ["A", "B", "a"]}}),
        ("source", {"source": LIVE | {"transport": {"kind": "bfile"}}}),
        ("source.transport.kind", transport(kind="tape")),
        ("source.transport.kind", transport(command=["cat"])),
        ("source.transport.command", transport(kind="command")),
        ("source.transport.range-command", transport(kind="command", command=["x"],
                                                     **{"range-command": 5})),
        ("source.transport.ports", transport(kind="command", command=["x"], ports=1)),
        ("fallback.slot", {"apply": APPLY, "fallback": LIVE | {"slot": "Not-A-Slot"}}),
    ],
)  # fmt: skip
def test_what_does_not_go_is_refused(tmp_path: Path, key: str, sections: dict[str, Any]) -> None:
    """The problem is reported for the key as it is in the file."""
    with pytest.raises(ConfigError) as caught:
        parse(tmp_path, **sections)
    assert [one.key for one in caught.value.problems] == [key]


def test_paths_are_as_short_as_links_allow(tmp_path: Path) -> None:
    (tmp_path / "real" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "below")
    document = {"kind": "offline", "dictionary": "./a/../d.json", "logs": ["link/../logs", "x//y/"]}
    source = parse(tmp_path, source=document).source
    assert isinstance(source, OfflineSource)
    assert source.dictionary == (tmp_path / "d.json",)
    # What is beside the link is not what is beside its end.
    assert str(source.logs[0]) == f"{tmp_path}/link/../logs"
    assert source.logs[1] == tmp_path / "x" / "y"
