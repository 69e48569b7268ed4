"""Makes the identity for the top of the status page: the appliance, its source and its target."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, Final

from olr_pg.applier.target.outage import target_place
from olr_pg.config.source_section import OracleSource
from olr_pg.monitor.status_values import Identity

if TYPE_CHECKING:
    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Database

_PARTS: Final = {
    part: re.compile(rf"\(\s*{part}\s*=\s*([^()\s]+)\s*\)", re.IGNORECASE)
    for part in ("HOST", "PORT", "SERVICE_NAME", "SID")
}


def identity_of(config: Config, database: Database, connect_string: str) -> Identity:
    """Return the identity of one target of an appliance.

    Args:
        config: the configuration with this target only.
        connect_string: the connection string of the target; empty if the clients are external.
    """
    source, apply = config.source, config.apply
    return Identity(
        instance=config.status.name or socket.gethostname(),
        config=config.file,
        source=database.name,
        container=database.con_name or "",
        source_place=server_place((source.standby or source).server)
        if isinstance(source, OracleSource)
        else "copied logs",
        target=target_place(connect_string) if connect_string else "",
        subscription=apply.subscription if apply is not None and connect_string else "",
    )


def server_place(server: str) -> str:
    """Return an Oracle server's host, port and service, without other parts of its address.

    Args:
        server: host:port/service, a connect descriptor, or a name of tnsnames.ora.
    """
    if "(" not in server:
        return server.partition("?")[0].rpartition("@")[2]
    found = {part: form.search(server) for part, form in _PARTS.items()}
    host, port, service, sid = (match[1] if match else "" for match in found.values())
    return host + (f":{port}" if port else "") + (f"/{service or sid}" if service or sid else "")
