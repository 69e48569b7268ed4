"""`source`: the database or the files from which redo and dictionary are read."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from olr_pg.config.fields import (
    ConfigPath,
    ConfigPaths,
    OracleServer,
    PathMapping,
    PlainText,
    Secret,
    Section,
    TrueCharsets,
    problem,
)
from olr_pg.scalars import MAX_SCN

SOURCE_KIND: Final = "source_kind"
"""The type of the validation error for an unknown `source.kind`."""


RedoLogs = Literal["archived", "online"]
StandbyMode = Literal["SYSDG", "SYSBACKUP", "SYSDBA"]

_REDO: Final = (
    '"archived": read archived logs; "online": also read the online logs while they are written'
)
_VERIFY: Final = (
    "milliseconds after which redo of an online log is read a second time and compared (0:"
    " never). Use this for mounts that may show blocks before they are completely written"
)

_CHARACTER_SETS: Final = (
    "an object that maps patterns of OWNER.NAME.COLUMN to character sets. Name the character set in"
    " which the applications wrote the text of these columns, if it is not NLS_CHARACTERSET"
    ' (charsets.md). "*" means all columns. The first matching pattern applies. To exclude columns,'
    " name NLS_CHARACTERSET for them"
)

_TRANSPORTS: Final = '"command", "sftp" or "bfile"'


class Vault(Section):
    """`source.vault`: the directory to which each archived log is copied once, before RMAN can
    delete it.
    """

    directory: ConfigPath = Field(
        description="the directory of the copies; it must contain nothing else"
    )
    keep_hours: float = Field(
        default=0.0,
        ge=0.0,
        description="hours for which a copy is kept after all transactions in it are confirmed",
    )


class CommandTransport(Section):
    """`source.transport` of kind ``command``: a command copies each log to this host."""

    kind: Literal["command"] = Field(description=_TRANSPORTS)
    command: list[str] = Field(
        min_length=1,
        description="a list: the program and its arguments; no shell is used. olr_pg replaces"
        " {name} by the name of the log in Oracle, {thread} and {sequence} by its"
        " numbers, and {file} by the file that the program must write. Without"
        " {file}, the program prints the log",
    )
    range_command: list[str] | None = Field(
        default=None,
        min_length=1,
        description='only for redo "online": a list as for `command`. The program prints {size}'
        " bytes of the online log {name} from byte {offset} on, or fewer if the file ends earlier",
    )
    timeout_seconds: float = Field(
        default=3_600.0, gt=0, le=86_400, description="maximum seconds to fetch one log"
    )


class SftpTransport(Section):
    """`source.transport` of kind ``sftp``: logs are copied from the host that has them."""

    kind: Literal["sftp"] = Field(description=_TRANSPORTS)
    host: PlainText = Field(min_length=1, description="the host with the archived logs")
    port: int = Field(default=22, ge=1, le=65_535, description="the port of the host's SSH server")
    user: PlainText = Field(
        min_length=1, description="the user that may read the archived logs on this host"
    )
    password: Secret | None = Field(
        default=None,
        description="the password of the user, or of the key in key-file if this key has one;"
        " written like `source.password`",
    )
    key_file: ConfigPath | None = Field(
        default=None,
        description="the file with the private key. Without a key file and a password, olr_pg"
        " uses the keys of an SSH agent or of the user's home directory",
    )
    known_hosts: ConfigPath | None = Field(
        default=None,
        description="the known_hosts file that contains the host's key; default: the known_hosts"
        " file of the user",
    )
    path_mapping: PathMapping = Field(
        default=(),
        description="pairs of paths: a path in Oracle, and the path of the same directory on the"
        " SSH server",
    )
    sessions: int = Field(
        default=4,
        ge=1,
        le=16,
        description="maximum number of connections that copy archived logs at the same time. The"
        " same number of additional connections reads the online logs. If the server allows"
        " fewer connections, lower this number",
    )
    timeout_seconds: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        description="maximum seconds to wait for one answer of the server",
    )


class BfileTransport(Section):
    """`source.transport` of kind ``bfile``: logs are read over the connection to Oracle."""

    kind: Literal["bfile"] = Field(description=_TRANSPORTS)
    directories: dict[str, str] = Field(
        default_factory=dict,
        description=(
            "an object that maps paths in Oracle to names of their directory objects;"
            " default: the directory object in ALL_DIRECTORIES with this path"
        ),
    )
    sessions: int = Field(
        default=2,
        ge=1,
        le=16,
        description="number of connections that read one archived log; olr_pg fetches up to four"
        " logs at a time. The same number of additional connections reads the online logs",
    )


class Standby(Section):
    """`source.standby`: a physical standby of the source. The redo is read from it instead of from
    the primary; it can be mounted and not open (mounted-standby.md).
    """

    server: OracleServer = Field(
        description="the standby: host:port/service, a connect descriptor or a name of tnsnames.ora"
    )
    user: PlainText = Field(
        min_length=1, description="a user in the password file of the standby, with `mode`"
    )
    password: Secret = Field(
        description="the password of this user; written like `source.password`"
    )
    mode: StandbyMode = Field(
        default="SYSDG",
        description='"SYSDG", "SYSBACKUP" or "SYSDBA": the administrative privilege with which this'
        " user logs in",
    )


LogTransportSection = Annotated[
    CommandTransport | SftpTransport | BfileTransport, Discriminator("kind")
]


class OracleSource(Section):
    """`source` of kind ``oracle``: a live database."""

    kind: Literal["oracle"] = Field(default="oracle", description='"oracle" or "offline"')
    user: PlainText = Field(min_length=1, description="the database user")
    password: Secret = Field(description='a string, "${ENV_NAME}" or {"file": "PATH"}')
    server: OracleServer = Field(
        description="host:port/service, a connect descriptor or a name of tnsnames.ora"
    )
    containers: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="a list of the PDBs that are replicated together (containers.md). The user must"
        " be a common user with the privilege SET CONTAINER. Without this key, olr_pg"
        " replicates the PDB of `server`",
    )
    path_mapping: PathMapping = Field(
        default=(),
        description="pairs of paths: a directory of archived logs in Oracle, and the directory"
        " where it is mounted on this machine",
    )
    archive_destination: int | None = Field(
        default=None,
        ge=0,
        description="the DEST_ID of the archive destination from which logs are read; default: any"
        " available destination",
    )
    query_timeout: int = Field(
        default=60, ge=1, le=86_400, description="maximum seconds of one call to Oracle"
    )
    poll_ms: int = Field(
        default=1_000,
        ge=10,
        le=3_600_000,
        description="milliseconds between checks for new logs; up to ten times longer while there"
        " are none",
    )
    thick_mode: bool = Field(default=False, description="true: use Oracle's client libraries")
    client_library: ConfigPath | None = Field(
        default=None, description="the directory of the client libraries, for thick-mode"
    )
    fetch_lobs: Literal["never", "unavailable"] = Field(
        default="never",
        description='"unavailable": if the redo does not contain a complete LOB value, read it from'
        ' its table; "never": do not read LOB values from tables',
    )
    vault: Vault | None = Field(
        default=None,
        description="an object: the vault, a directory with olr_pg's own copies of archived logs",
    )
    transport: LogTransportSection | None = Field(
        default=None,
        description="an object: how logs that are not mounted here are copied into the vault",
    )
    standby: Standby | None = Field(
        default=None,
        description="an object: a physical standby from which the redo is read. `server` then names"
        " the primary, which provides the dictionary, rows and LOB values",
    )
    character_sets: TrueCharsets = Field(default_factory=dict, description=_CHARACTER_SETS)
    redo: RedoLogs = Field(default="archived", description=_REDO)
    verify_ms: int = Field(default=0, ge=0, le=10_000, description=_VERIFY)

    @model_validator(mode="after")
    def _containers_differ(self) -> Self:
        names = {one.upper() for one in self.containers}
        if not all(names) or len(names) < len(self.containers):
            raise problem("each PDB only once in `containers`", show="nothing")
        return self

    @model_validator(mode="after")
    def _what_is_brought_has_a_place(self) -> Self:
        if self.transport is not None and self.vault is None:
            raise problem(
                "a `vault` section, because `transport` copies the logs into the vault",
                show="nothing",
            )
        if isinstance(self.transport, CommandTransport) and (
            (self.redo == "online") != (self.transport.range_command is not None)
        ):
            raise problem(
                '`range-command` in `transport` if redo is "online", and only then',
                show="nothing",
            )
        if self.standby is not None and isinstance(self.transport, BfileTransport):
            raise problem(
                '`transport` of kind "sftp" or "command" with `standby`, because "bfile" needs an'
                " open database",
                show="nothing",
            )
        return self


class Prove(Section):
    """`prove`: the scratch schema in which `olr-pg prove` runs its scenarios (proving.md)."""

    user: PlainText = Field(min_length=1, description="the owner of the scratch schema")
    password: Secret = Field(
        description="the password of this user; written like `source.password`"
    )
    server: OracleServer | None = Field(
        default=None,
        description=(
            "the service for this user, if it is not `source.server`. If `source.user` is"
            " a common user, name the service of the PDB"
        ),
    )


class OfflineSource(Section):
    """`source` of kind ``offline``: a dictionary snapshot and archived logs."""

    kind: Literal["offline"] = Field(description='"oracle" or "offline"')
    dictionary: ConfigPaths = Field(
        description="the path of the dictionary snapshot; with several PDBs, a list with one path"
        " for each PDB"
    )
    logs: ConfigPaths = Field(
        description="archived logs: a path, or a list of files, directories and globs"
    )
    character_sets: TrueCharsets = Field(default_factory=dict, description=_CHARACTER_SETS)
    redo: RedoLogs = Field(default="archived", description=_REDO)
    online_logs: ConfigPaths | None = Field(
        default=None,
        description='online logs, for redo "online": files, directories and globs; they must'
        " contain nothing else",
    )
    verify_ms: int = Field(default=0, ge=0, le=10_000, description=_VERIFY)
    poll_ms: int = Field(
        default=100,
        ge=10,
        le=3_600_000,
        description="milliseconds between checks for new logs; olr_pg waits longer if a check takes"
        " long",
    )
    tables: ConfigPath | None = Field(
        default=None, description="the directory with the tables' rows, OWNER.NAME.parquet"
    )
    tables_scn: int | None = Field(
        default=None,
        ge=1,
        le=MAX_SCN,
        description="the SCN of these rows; default: the SCN in the files, else the dictionary's",
    )

    @model_validator(mode="after")
    def _online_logs_are_named(self) -> Self:
        if (self.redo == "online") != (self.online_logs is not None):
            raise problem('`online-logs` if redo is "online", and only then', show="nothing")
        return self


def _source_kind(value: object) -> str:
    if isinstance(value, OracleSource | OfflineSource):
        return value.kind
    kind = value.get("kind", "oracle") if isinstance(value, dict) else "oracle"
    return kind if isinstance(kind, str) else "?"


Source = Annotated[
    Annotated[OracleSource, Tag("oracle")] | Annotated[OfflineSource, Tag("offline")],
    Discriminator(
        _source_kind,
        custom_error_type=SOURCE_KIND,
        custom_error_message='expected "oracle" or "offline"',
    ),
]
