"""The query of a client is checked before the source runs it, but not that of the applier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.dictionary.client_queries import check_relations
from olr_pg.errors import Code
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from tests.server.test_listener import MemorySource, RawClient

if TYPE_CHECKING:
    import pytest

    from olr_pg.server.checkpoint import Checkpoint

PASSWORDS = b"SELECT name, spare4 FROM sys.user$"
LIST = b"SELECT owner, table_name FROM all_tables"


def test_only_the_query_of_a_client_is_limited(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, asked = MemorySource(1), list[str]()
    monkeypatch.setattr(source, "resolve", lambda sql, _: asked.append(sql))
    settings = PortSettings(check_query=check_relations)
    with Listener(source, checkpoint, settings) as server, RawClient(server.address) as client:
        assert client.error(1, PASSWORDS) == Code.TABLE_QUERY_NOT_READ_ONLY
        assert asked == []
        assert client.ask(1, LIST) == (1, b"")
        assert asked == [LIST.decode()]
