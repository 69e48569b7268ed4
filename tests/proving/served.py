"""A stand-in that takes SQL, and the configuration that `olr-pg prove` works with."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import oracledb

from olr_pg.config.reading import load_config, parse_config
from olr_pg.config.source_section import OracleSource, Prove
from olr_pg.simulator.database_shape import DatabaseShape, demo_shape
from olr_pg.simulator.oracle_net.serve import SqlServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.config.model import Config


class Served(NamedTuple):
    """A stand-in, and how to work with it."""

    folder: Path
    server: SqlServer
    source: OracleSource
    prove: Prove

    @property
    def owner(self) -> OracleSource:
        """How the owner of the scratch schema logs on."""
        update = {"user": self.prove.user, "password": self.prove.password}
        return self.source.model_copy(update=update)

    @property
    def dsn(self) -> str:
        return self.server.server.connect_string

    def execute(self, statement: str) -> None:
        """Carry a statement out as the owner of the scratch schema."""
        with oracledb.connect(user="app", password="olr", dsn=self.dsn) as connection:
            connection.cursor().execute(statement)
            connection.commit()

    def config_file(self, target: str) -> Path:
        """Write a configuration with a target."""
        path = self.folder / "prove.json"
        document = document_of(self.folder)
        document["context"] = {"data": str(self.folder / "data")}
        document["apply"] = {"connect-string": target, "tables": ["APP.NONE"]}
        path.write_text(json.dumps(document), "utf-8")
        return path

    def config(self, target: str) -> Config:
        """The same, read."""
        return load_config(self.config_file(target))


def document_of(folder: Path) -> dict[str, Any]:
    """The stand-in's own configuration, with any free port: tests run beside each other."""
    found: dict[str, Any] = json.loads((folder / "olr-pg.json").read_text("utf-8"))
    return {"target": {"address": "127.0.0.1:0"}, **found}


@contextmanager
def served_source(
    folder: Path, seed: int = 4, shape: DatabaseShape | None = None
) -> Iterator[Served]:
    """A stand-in on a free port."""
    with SqlServer(seed, folder, shape or demo_shape(), switch_seconds=0.2) as server:
        document = document_of(folder)
        document["apply"] = {"connect-string": "embedded", "tables": ["APP.NONE"]}
        config = parse_config(document, folder)
        assert isinstance(config.source, OracleSource)
        assert config.prove is not None
        yield Served(folder, server, config.source, config.prove)
    assert server.server.malformed == []
