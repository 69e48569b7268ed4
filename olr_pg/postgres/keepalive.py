"""Timeouts and keepalives for every connection to a PostgreSQL server."""

from __future__ import annotations

from typing import Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

# A server can disappear without closing its connections, for example if its host loses power or a
# firewall forgets the connection. With these settings a client notices this after about a minute.
# Without them, a statement would wait for hours.
_VIGILANCE: Final[dict[str, str | int | None]] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def with_timeouts(connect_string: str, **options: str | int | None) -> str:
    """Add timeouts and keepalives to a connection string, unless it sets them itself.

    Args:
        options: parameters that override the connection string.

    Raises:
        psycopg.ProgrammingError: the connection string is invalid.
    """
    return make_conninfo("", **{**_VIGILANCE, **conninfo_to_dict(connect_string), **options})
