"""`fallback`: replication from PostgreSQL back to Oracle after the cut-over (fallback.md)."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from olr_pg.config.fields import ConfigAddress, OracleServer, PlainText, Secret, Section, problem
from olr_pg.config.table_patterns import LEDGER

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
