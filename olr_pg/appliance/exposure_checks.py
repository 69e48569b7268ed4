"""Checks what other users of this machine, or of the network, can change or read: directories from
which code is loaded, the configuration and its secrets, and connections to the databases.

The commands refuse directories with code that another user could replace (`check_code_places`).
``olr-pg doctor`` reports the rest (`check_files`, `check_target_peer`, `check_search_path`,
`check_source_peer`).
"""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import platformdirs

from olr_pg.files.owned import others_can_read, others_can_write

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from psycopg import Connection

    from olr_pg.config.model import Config
    from olr_pg.config.port_sections import Tls
    from olr_pg.config.source_section import OracleSource
    from olr_pg.observability.findings import Finding

FILES: Final = "files"
TARGET_PEER: Final = "postgres.tls"
SOURCE_PEER: Final = "oracle.tls"

SEARCH_PATH: Final = "postgres.search-path"
_OPEN_SCHEMAS: Final = """
SELECT n.nspname::text
FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY AS path (name, place)
    JOIN pg_catalog.pg_namespace AS n ON n.nspname OPERATOR(pg_catalog.=) path.name
WHERE EXISTS (
    SELECT FROM pg_catalog.aclexplode(n.nspacl)
    WHERE grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid
        AND privilege_type OPERATOR(pg_catalog.=) 'CREATE'::pg_catalog.text)
ORDER BY path.place
"""
_PASSWORD_LENGTH_MIN: Final = 4
_VERIFIED: Final = "verify-full"


def check_code_places(environ: Mapping[str, str] = os.environ) -> None:
    """Check the directories of compiled kernels and of Java's files that the environment names.

    Whoever can write there can make this process execute any code. The directory of the program
    itself is not checked, because whoever can write there can change the program, too.

    Raises:
        OlrPgError: 1223, another user can write to a directory.
    """
    for place in _code_places(environ):
        if others_can_write(place):
            from olr_pg.errors import Code, OlrPgError  # rarely needed

            raise OlrPgError(Code.CODE_OF_OTHERS, "the directory is not safe", directory=str(place))


def _code_places(environ: Mapping[str, str]) -> Iterator[Path]:
    named = environ.get("NUMBA_CACHE_DIR")
    if named:
        yield Path(named)
        yield from _folders(Path(named))  # one for each directory of sources
    cache = platformdirs.user_cache_path("olr_pg")
    yield cache
    yield from (one for one in _folders(cache) if one.name.startswith("java-"))


def _folders(place: Path) -> list[Path]:
    """Return the directories in a directory; none if it is missing, or if this user cannot read it.
    For example, sudo can leave HOME as it was.
    """
    try:
        return [one for one in place.iterdir() if one.is_dir()]
    except OSError:
        return []


def check_files(config: Config) -> Iterator[Finding]:
    """Yield the findings about the configuration file and the files of secrets that it names.

    The configuration names commands that olr_pg runs, so other users must not change it.
    """
    from olr_pg.config.model import secret_texts
    from olr_pg.config.reading import read_text, read_values
    from olr_pg.observability.findings import warning

    if not config.file:
        return
    path = Path(config.file)
    if others_can_write(path):
        yield warning(
            FILES,
            f"other users can change the configuration {path}, which names commands and targets",
            "chown and chmod the file and its directories, so that only this user and root can"
            " write",
        )
    text = read_text(path)
    has_secret = any(
        one in text and not _is_connect_string(one)
        for one in secret_texts(config)
        if len(one) >= _PASSWORD_LENGTH_MIN
    )
    if has_secret and others_can_read(path):
        yield warning(
            FILES,
            f"the configuration {path} contains a secret, and all users of this machine can read"
            " it",
            f"chmod o-r {path}, or write ${{ENV_NAME}} or a file in place of the secret",
        )
    files = {*_secret_files(read_values(path), path.parent), *_keys(config)}
    for file in sorted(file for file in files if others_can_read(file)):
        yield warning(
            FILES, f"all users of this machine can read the secret in {file}", f"chmod o-r {file}"
        )


def _is_connect_string(text: str) -> bool:
    """Return whether a secret is a whole connect string; its password is a secret of its own."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        return bool(conninfo_to_dict(text))
    except ProgrammingError:
        return False


def _secret_files(value: Any, folder: Path) -> Iterator[Path]:
    """Yield the files that a configuration names for secrets."""
    match value:
        case {"file": str(file)} if len(value) == 1:
            yield folder / file
        case str() if value.startswith("file:"):
            yield folder / value.removeprefix("file:").removeprefix("//")
        case dict():
            for one in value.values():
                yield from _secret_files(one, folder)
        case list():
            for one in value:
                yield from _secret_files(one, folder)


def _keys(config: Config) -> Iterator[Path]:
    sections: list[Tls | None] = [part.port.tls for part in config.targets]
    sections.append(config.status.tls)
    yield from (one.key for one in sections if one is not None)


def check_target_peer(connection: Connection[Any]) -> Iterator[Finding]:
    """Yield a finding if the connection to PostgreSQL is not encrypted, or if libpq has not checked
    that the server is the one that the connect string names.

    By default, libpq encrypts if the server can (``sslmode=prefer``). Then anybody between the two
    can read and change everything.
    """
    from olr_pg.observability.findings import warning

    known = {one.keyword: one.val for one in connection.pgconn.info}
    host = connection.info.host
    if _is_here(host) or connection.pgconn.used_gssapi:
        return
    if connection.pgconn.ssl_in_use and known[b"sslmode"] == _VERIFIED.encode():
        return
    what = (
        f"libpq does not check that the server is {host}: sslmode is"
        f" {(known[b'sslmode'] or b'').decode()}"
        if connection.pgconn.ssl_in_use
        else f"the connection to {host} is not encrypted"
    )
    mend = f"add sslmode={_VERIFIED} and sslrootcert to `apply.connect-string` (deploy.md)"
    yield warning(TARGET_PEER, what, mend)


def check_search_path(connection: Connection[Any]) -> Iterator[Finding]:
    """Yield a finding for each schema of the search path in which every role can create objects.

    A function or an operator there can replace one of PostgreSQL's, if the types of its parameters
    match better. It then runs with the privileges of the applier (CVE-2018-1058).
    """
    from psycopg import sql

    from olr_pg.observability.findings import warning

    for (schema,) in connection.execute(_OPEN_SCHEMAS):
        name = sql.Identifier(schema).as_string(connection)
        yield warning(
            SEARCH_PATH,
            f"every role can create functions in the schema {schema} of the search path, and the"
            " applier can call them instead of PostgreSQL's",
            f"REVOKE CREATE ON SCHEMA {name} FROM PUBLIC;",
        )


def check_source_peer(source: OracleSource) -> Iterator[Finding]:
    """Yield a finding for each server of the source whose connection is not encrypted, or whose
    certificate may name another server.
    """
    import oracledb

    from olr_pg.observability.findings import warning

    servers = {"source.server": source.server}
    if source.standby is not None:
        servers["source.standby.server"] = source.standby.server
    for key, server in servers.items():
        found = oracledb.ConnectParams()
        try:
            found.parse_connect_string(server)
        except oracledb.Error:
            yield warning(
                SOURCE_PEER,
                f"`{key}` is a name that only Oracle's client libraries know, so it is unknown"
                " whether the connection is encrypted",
                "check that its address has the protocol TCPS, or that Oracle's native network"
                " encryption is required on both sides",
            )
            continue
        hosts = list(zip(*map(_listed, (found.host, found.protocol)), strict=False))
        hosts = [(host, protocol) for host, protocol in hosts if host and not _is_here(host)]
        plain = [host for host, protocol in hosts if str(protocol).lower() != "tcps"]
        mend = f"write a TCPS address into `{key}`, such as tcps://host:2484/SERVICE (deploy.md)"
        if plain:
            yield warning(
                SOURCE_PEER,
                f"`{key}`: the connection to {plain[0]} is not encrypted, unless Oracle's native"
                " network encryption is required on both sides",
                mend,
            )
        elif hosts and not all(_listed(found.ssl_server_dn_match)):
            yield warning(
                SOURCE_PEER,
                f"`{key}`: the name in the certificate of {hosts[0][0]} is not checked",
                "remove SSL_SERVER_DN_MATCH from the address",
            )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_here(host: str) -> bool:
    """Return whether a connection stays on this machine."""
    if not host or host.startswith(("/", "@")) or host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
