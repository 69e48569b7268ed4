"""Validates PostgreSQL connect strings: libpq must parse them, and must recognise the whole
password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, SecretStr

from olr_pg.config.fields import Secret, problem

if TYPE_CHECKING:
    from collections.abc import Mapping


def _is_connection(text: str) -> bool:
    """Return whether libpq can parse a connect string, knows its parameters, and reads the whole
    password.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict, timeout_from_conninfo

    try:
        parameters = conninfo_to_dict(text)
        timeout_from_conninfo(parameters)
    except ProgrammingError:  # do not report the error: its text may contain a part of the password
        return False
    return ("=" in text or "://" in text) and not _is_cut_short(parameters)


def _is_cut_short(parameters: Mapping[str, object]) -> bool:
    """Return whether libpq took a part of the password for another part of the URL, such as the
    host. Error messages would then print that part.

    libpq ends the password of a URL at the first @. If a / precedes the @, libpq reads no password
    at all.
    """
    hosts = str(parameters.get("host", "")).split(",")
    ports = str(parameters.get("port", "")).split(",")
    # Ignore an @ at the beginning of a host, which stands for a socket in the abstract namespace.
    hidden = any("@" in host[1:] and not host.startswith("/") for host in hosts)
    unplaced = "user" not in parameters and "@" in str(parameters.get("dbname", ""))
    return hidden or unplaced or not all(port == "" or port.isdecimal() for port in ports)


_SERVER: Final = (
    "a PostgreSQL URL (postgresql://…, with % and @ of a password as %25 and %40) or"
    " parameters that PostgreSQL knows (host=… dbname=…; put a value with spaces in"
    " quotes: password='${PG_PASSWORD}', and write ' and \\ in it as \\' and \\\\)"
)


def _postgres_server(value: SecretStr) -> SecretStr:
    if _is_connection(value.get_secret_value()):
        return value
    raise problem(_SERVER, show="kind")


def _postgres_connection(value: SecretStr) -> SecretStr:
    if value.get_secret_value() == "embedded" or _is_connection(value.get_secret_value()):
        return value
    raise problem(f'"embedded", {_SERVER}', show="kind")


PostgresServer = Annotated[Secret, AfterValidator(_postgres_server)]
"""The connect string of an existing PostgreSQL server."""

PostgresConnection = Annotated[Secret, AfterValidator(_postgres_connection)]
"""The connect string of an existing PostgreSQL server, or "embedded"."""
