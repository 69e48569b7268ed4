"""Defines the settings of connections, which the appliance accepts or makes.

Each of its ports has the settings `tls`, `limits` and `allow`. A port's TLS context is created from
the files that `tls` names. The sections `status` and `metrics` are the status page, its commands,
and the exporters of metrics. PostgreSQL connect strings are valid if libpq parses them and
recognises the whole password.

The section `fallback` is replication from PostgreSQL back to Oracle after the cut-over
(fallback.md).
"""

from __future__ import annotations

import re
import ssl
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, Field, SecretStr

from olr_pg.config.fields import (
    ConfigAddress,
    ConfigNetworks,
    ConfigPath,
    OracleServer,
    PlainText,
    Secret,
    Section,
    problem,
)
from olr_pg.config.table_patterns import LEDGER
from olr_pg.errors import Code, OlrPgError, system_reason

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


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
    host. If libpq took it so, error messages would print that part of the password.

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

_MIB: Final = 1024 * 1024

ALLOW: Final = (
    "a list of the addresses and networks of clients that may connect, in addition to this"
    " machine itself. Without a list, all clients may connect"
)


class Tls(Section):
    """`tls` of a port: the server's certificate, and whether clients need certificates."""

    certificate: ConfigPath = Field(description="the PEM file of the certificate and its chain")
    key: ConfigPath = Field(description="the PEM file of the certificate's private key")
    key_password: Secret | None = Field(default=None, description="the private key's password")
    client_ca: ConfigPath | None = Field(
        default=None,
        description="a PEM file of the authorities that sign the certificates of clients",
    )


class Limits(Section):
    """`target.limits`: limits on the resources that clients of the port may use."""

    clients: int = Field(
        default=64,
        ge=1,
        le=4096,
        description="maximum number of connections; a new one replaces the one that has been idle"
        " longest",
    )
    idle_seconds: float = Field(
        default=60.0, gt=0, le=86_400, description="seconds within which a client must subscribe"
    )
    request_seconds: float = Field(
        default=20.0,
        gt=0,
        le=3_600,
        description="seconds within which a client must send one request, or complete the TLS"
        " handshake",
    )
    silent_seconds: float | None = Field(
        default=3_600.0,
        gt=0,
        le=86_400 * 7,
        description="seconds for which the replicating client may stay silent: it requests nothing,"
        " or does not read its answers. After that, another client that sends TableList replaces"
        " the silent client. The server closes the connection of the silent client, and delivers"
        " the unconfirmed transactions to the new client. Without another client there is no"
        " limit. null: a silent client is never replaced",
    )
    request_bytes: int = Field(
        default=_MIB, ge=1024, le=64 * _MIB, description="maximum bytes of a request"
    )


def server_context(tls: Tls) -> ssl.SSLContext:
    """Return the TLS context of a listening port. The context allows TLS 1.2 and later, which is
    the default of Python's `ssl`.

    Raises:
        OlrPgError: 4030, a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    password = tls.key_password.get_secret_value() if tls.key_password else ""
    try:
        # Always pass a password, because otherwise the library would prompt for one at the
        # terminal.
        context.load_cert_chain(tls.certificate, tls.key, password)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(error, tls.certificate) from error
    if tls.client_ca is not None:
        try:
            context.load_verify_locations(tls.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise _unusable(error, tls.client_ca) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _unusable(error: OSError, path: Path) -> OlrPgError:
    return OlrPgError(Code.TLS_FILES_UNUSABLE, system_reason(error), file=str(path))


class PostgresMetrics(Section):
    """`metrics.postgres`: the table to which metrics are written."""

    connect_string: PostgresServer = Field(description="connect string of the metrics database")
    table_scheme: str = Field(default="public", min_length=1, description="the schema of the table")
    table_name: str = Field(min_length=1, description="the name of the table")
    interval_seconds: float = Field(
        default=10.0, ge=1, le=86_400, description="seconds between two writes"
    )
    keep_hours: float = Field(default=168.0, gt=0, description="hours after which a row is deleted")


class Otlp(Section):
    """`metrics.otlp`: the OpenTelemetry collector to which metrics or spans are sent; needs `pip
    install 'olr-pg[otel]'`.
    """

    endpoint: str = Field(
        pattern=r"^https?://[^\s/?#]+[^\s?#]*$",
        description='URL of the collector, "http://127.0.0.1:4318" for example; metrics go to'
        " `/v1/metrics` below it, spans to `/v1/traces`",
    )
    headers: dict[str, Secret] = Field(
        default_factory=dict,
        description='an object: names and values of HTTP headers for each request; "${ENV_NAME}" or'
        ' {"file": "PATH"} for a secret',
    )
    interval_seconds: float = Field(
        default=15.0, ge=1, le=86_400, description="seconds between two exports of the metrics"
    )
    traces: bool = Field(
        default=True, description="true: also send spans; false: send only metrics"
    )


class Metrics(Section):
    """`metrics`: the exporters of metrics."""

    tables: Literal["auto", "all", "changed"] = Field(
        default="auto",
        description='the tables that have metrics of their own. "all": all tables; "changed":'
        " tables with changes since the start, tables with a problem, and the table with the"
        ' largest lag; "auto": "all" with up to 1,000 tables, "changed" with more, because each'
        " table has up to 20 values",
    )
    postgres: PostgresMetrics | None = Field(
        default=None, description="an object: the metrics table"
    )
    otlp: Otlp | None = Field(
        default=None, description="an object: an OpenTelemetry collector for metrics and spans"
    )


TOKEN_LENGTH_MIN: Final = 16
"""Minimum number of characters of a token."""


class Control(Section):
    """`status.control`: commands that clients with a token can send over HTTP."""

    tokens: dict[str, Secret] = Field(
        min_length=1,
        description=(
            "an object that maps names of persons or programs to tokens. A person or program may"
            ' run commands with the token. A token has 16 characters or more; write "${ENV_NAME}"'
            ' or {"file": "PATH"}'
        ),
    )


class Status(Section):
    """`status`: the status page, `/metrics` and `/healthz`."""

    enabled: bool = Field(default=True, description="false: serve no status page")
    name: PlainText | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="the name of the appliance on the page; default: the name of the machine",
    )
    address: ConfigAddress | None = Field(
        default=None,
        description='the address of the page, "host:port"; default: 127.0.0.1:9701, or another free'
        " port if 9701 is in use",
    )
    tls: Tls | None = Field(default=None, description="an object: TLS settings of the page")
    allow: ConfigNetworks | None = Field(default=None, description=ALLOW)
    hosts: tuple[PlainText, ...] | None = Field(
        default=None,
        strict=False,
        description="a list of the DNS names with which browsers and proxies may request the page"
        " (the header Host); addresses and localhost are always accepted. Default: if the page"
        " listens on a loopback address without TLS, no names; otherwise all names (security.md)",
    )
    control: Control | None = Field(
        default=None,
        description="an object: commands over HTTP (control.md); without it, no commands are"
        " accepted",
    )


_NAME_MAX: Final = 63
_SLOT: Final = re.compile(r"[a-z0-9_]{1,63}")
_REPLACED: Final = re.compile(r"[^a-z0-9_]")


def _slot_name(name: str) -> str:
    if not _SLOT.fullmatch(name):
        raise problem("1 to 63 lower-case letters, digits and _")
    return name


def account_name(user: str) -> str:
    """Return a user's name as Oracle's dictionary contains it."""
    quoted = len(user) > 2 and user[0] == user[-1] == '"'
    return user[1:-1] if quoted else user.upper()


class FallbackPolicies(Section):
    """`fallback.policies`: what to do with values that Oracle cannot store unchanged.

    `refuse` stops the table with an error that names the row and the column. The other policies
    store a changed value, and record the change.
    """

    empty_text: Literal["null", "blank", "refuse"] = Field(
        default="null",
        description="an empty text or bytea. `null`: Oracle stores NULL; `blank`: Oracle stores one"
        " space (only for text). With `null`, a column that is NOT NULL or belongs to a"
        " key rejects such values",
    )
    length: Literal["refuse", "cut", "null"] = Field(
        default="refuse",
        description="a value that is longer than its column in Oracle's bytes or characters",
    )
    characters: Literal["refuse", "cut", "null"] = Field(
        default="refuse",
        description="characters that Oracle's character set lacks; `cut` omits them",
    )
    digits: Literal["refuse", "cut", "null"] = Field(
        default="refuse",
        description="numbers with more digits than the column allows. `cut` rounds digits after"
        " the decimal point, or after the last digit that the column keeps, as Oracle does. A"
        " number that is too large is still rejected",
    )
    infinity: Literal["refuse", "null"] = Field(
        default="refuse", description="infinite numbers and dates, and NaN"
    )
    years: Literal["refuse", "null"] = Field(
        default="refuse", description="dates outside Oracle's years, 4712 BC to 9999"
    )
    fraction: Literal["refuse", "cut"] = Field(
        default="refuse",
        description="a time with more precision than its column: microseconds if Oracle keeps"
        " fewer digits, a time of day in a date",
    )
    interval: Literal["refuse", "null"] = Field(
        default="refuse",
        description="intervals with both months and days, which Oracle stores in different types,"
        " or with more digits than the column",
    )
    document: Literal["refuse", "null"] = Field(
        default="refuse",
        description="a text that is not the XML, JSON, hexadecimal, row address or flag that its"
        " column in Oracle requires",
    )


class Fallback(Section):
    """`fallback`: settings of the fallback, with the account that applies PostgreSQL's changes to
    Oracle.
    """

    user: PlainText = Field(
        min_length=1,
        description="the Oracle account that applies the changes (sql/oracle/fallback.sql creates"
        " it)",
    )
    password: Secret = Field(
        description="the password of this user; written like `source.password`"
    )
    server: OracleServer | None = Field(
        default=None,
        description="the service for this user, if it is not `source.server`; required with an"
        " offline source",
    )
    slot: Annotated[str, AfterValidator(_slot_name)] | None = Field(
        default=None,
        description="the name of the replication slot in the target; null: `olr_pg_fallback_`"
        " followed by `apply.subscription`. If `source.containers` lists several PDBs,"
        " each PDB has a slot, and the name of the PDB is appended",
    )
    publication: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        description="the name of the publication in the target; null: the same name as the slot",
    )
    max_wal_mb: int = Field(
        default=16_384,
        ge=16,
        description="maximum MiB of PostgreSQL's WAL that the slot may keep before an alert",
    )
    metrics_address: ConfigAddress | None = Field(
        default=None,
        description='"host:port" at which `olr-pg fallback run` serves its status page and'
        " /metrics, with `status.tls` and `status.allow`; null: not served",
    )
    on_conflict: Literal["error", "skip", "overwrite"] = Field(
        default="error",
        description="what to do with a change whose row does not exist in Oracle, or whose new row"
        " exists already; values as for `apply.on-conflict`",
    )
    omit_columns: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="a list of OWNER.TABLE.COLUMN, with `*` and `?`: columns that exist only in"
        " PostgreSQL. The values of these columns are not replicated to Oracle. If another"
        " column exists only in PostgreSQL, its table stops",
    )
    policies: FallbackPolicies = Field(
        default_factory=FallbackPolicies,
        description="an object: policies for values that Oracle cannot store as they are",
    )

    @property
    def owner(self) -> str:
        """The schema of the ledger: the user's name, as Oracle's dictionary contains it."""
        return account_name(self.user)

    @property
    def ledger(self) -> str:
        """The ledger as ``OWNER.NAME``, as Oracle's dictionary contains it."""
        return f"{self.owner}.{LEDGER}"

    def omits(self, table: str, column: str) -> bool:
        """Return whether `omit-columns` names a column of PostgreSQL.

        Args:
            table: the table as ``OWNER.NAME``.
        """
        name = f"{table}.{column}".upper()
        return any(fnmatchcase(name, pattern.upper()) for pattern in self.omit_columns)

    def slot_of(self, subscription: str, container: str = "") -> str:
        """Return the name of a subscription's replication slot.

        Args:
            container: the PDB, if the source has several PDBs; otherwise empty.
        """
        name = self.slot or f"olr_pg_fallback_{_plain(subscription)}"
        return _with_container(name, container)

    def publication_of(self, subscription: str, container: str = "") -> str:
        """Return the name of a subscription's publication; the arguments are the same as for
        `slot_of`.
        """
        if self.publication is None:
            return self.slot_of(subscription, container)
        return _with_container(self.publication, container)


def _plain(name: str) -> str:
    return _REPLACED.sub("_", name.lower())


def _with_container(name: str, container: str) -> str:
    """Append the name of a PDB to `name`. Truncate `name` first, so that the result is not longer
    than PostgreSQL allows.
    """
    end = f"_{_plain(container)}" if container else ""
    return f"{name[: _NAME_MAX - len(end)]}{end}"
