"""Timeouts and keepalives for every connection to a PostgreSQL server that may not answer."""

from __future__ import annotations

from typing import Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

# A server may disappear silently: a host loses power, a firewall drops its state. With these
# settings, that is noticed within about a minute; without them, a waiting statement would wait for
# hours.
_VIGILANCE: Final[dict[str, str | int | None]] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def with_timeouts(connect_string: str, **options: str | int | None) -> str:
    """Add timeouts and keepalives to a connect string that does not set them.

    Args:
        options: parameters that override the connect string.

    Raises:
        psycopg.ProgrammingError: the connect string is invalid.
    """
    return make_conninfo("", **{**_VIGILANCE, **conninfo_to_dict(connect_string), **options})
