"""Checks what only some commands use: certificates, the address of the Oracle server, addresses to
listen on, tokens, and the encryption key.

A command checks only the certificates and addresses that it uses. Other commands may read the same
configuration on machines on which the certificates do not exist.

`load_for_work` removes the variables that the configuration refers to from the process's
environment. A variable that the configuration refers to usually contains a secret. Child processes
such as Java, Spark's workers and PostgreSQL do not need it, but would inherit it and pass it on to
their own children.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from olr_pg.config.address import PORT_MAX, Address
from olr_pg.config.port_sections import TOKEN_LENGTH_MIN, server_context
from olr_pg.config.reading import ConfigError, Problem, load_config, may_hide_secret
from olr_pg.config.source_section import OracleSource
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.sealed import RowKey

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config
    from olr_pg.config.port_sections import Tls


_SERVER_FORMS: Final = (
    'host:port/service, a connect descriptor "(DESCRIPTION=…)", or a name from'
    " tnsnames.ora in the directory TNS_ADMIN"
)
_NO_NAME: Final = {
    "DPY-4027": "neither TNS_ADMIN nor ORACLE_HOME is set",
    "DPY-4026": "the directory has no tnsnames.ora",
    "DPY-4000": "tnsnames.ora does not contain this name",
    "DPY-2056": "LDAP names require `source.thick-mode`",
}
"""The reasons for the driver's errors about a text that it takes for a net service name."""


def check_outside(config: Config, file: str | None = None) -> None:
    """Check the TLS files, the addresses and the secrets that `run` will use, without opening
    connections.

    Raises:
        ConfigError: 4030 TLS files cannot be used, 7013 the driver does not support the form of
            a server of the source, 1190 the encryption key is unusable, 8017 a token is too short,
            1002 two ports have the same address, or there are problems of several kinds.
    """
    found = list(_tls_problems(config))
    codes = {Code.TLS_FILES_UNUSABLE} if found else set[int]()
    for code, problems in (
        (Code.CONFIG_INVALID, _address_problems(config)),
        (Code.ENCRYPTION_KEY_UNUSABLE, _key_problems(config)),
        (Code.CONTROL_TOKEN_WEAK, _token_problems(config)),
    ):
        others = list(problems)
        found += others
        codes |= {code} if others else set()
    if isinstance(config.source, OracleSource):
        servers = list(_server_problems(config.source))
        found = servers + found
        if servers:
            codes.add(Code.ORACLE_ADDRESS_INVALID)
    if found:
        raise ConfigError(
            codes.pop() if len(codes) == 1 else Code.CONFIG_INVALID, tuple(found), file
        )


def _server_problems(source: OracleSource) -> Iterator[Problem]:
    if source.thick_mode:  # Oracle's client libraries know more ways to resolve names
        return
    servers = {"source.server": source.server}
    if source.standby is not None:
        servers["source.standby.server"] = source.standby.server
    for key, server in servers.items():
        reason = _unusable_server(server)
        if reason is not None:
            shown = not may_hide_secret(server)
            found = json.dumps(server, ensure_ascii=False) if shown else "a string (not shown)"
            yield Problem(key, found, _SERVER_FORMS + (f" ({reason})" if reason else ""))


def _unusable_server(server: str) -> str | None:
    """Return why the driver cannot use the address of a server; None if no reason is found. This
    opens no connection.
    """
    import oracledb

    parameters = oracledb.ConnectParams()
    try:
        parameters.parse_connect_string(server)
    except oracledb.Error as error:
        return _NO_NAME.get(error.args[0].full_code, "")
    hosts, ports = (
        part if isinstance(part, list) else [part] for part in (parameters.host, parameters.port)
    )
    if not all(hosts):
        return "the host is missing"
    if not all(1 <= port <= PORT_MAX for port in ports):
        return f"the port is not from 1 to {PORT_MAX}"
    return None


def _address_problems(config: Config) -> Iterator[Problem]:
    """Yield the addresses on which two services of this configuration would listen. The addresses
    of several targets always differ.
    """
    several = isinstance(config.target, tuple)
    used = [
        (f"target[{number}].address" if several else "target.address", part.port.address)
        for number, part in enumerate(config.targets)
    ]
    if config.status.enabled and config.status.address is not None:
        used.append(("status.address", config.status.address))
    if config.fallback is not None and config.fallback.metrics_address is not None:
        used.append(("fallback.metrics-address", config.fallback.metrics_address))
    first = dict[Address, str]()
    for key, address in used:
        other = first.setdefault(address, key)
        if address.port and other != key:
            yield Problem(key, f'"{address}"', f"another address than {other}")


def _key_problems(config: Config) -> Iterator[Problem]:
    key = config.context.encryption_key
    if key is None:
        return
    try:
        RowKey.of_text(key.get_secret_value())
    except ValueError as error:
        yield Problem("context.encryption-key", "a string", f"32 bytes in base64 ({error})")


def _token_problems(config: Config) -> Iterator[Problem]:
    control = config.status.control
    for name, token in control.tokens.items() if control is not None else ():
        if len(token.get_secret_value()) < TOKEN_LENGTH_MIN:
            key = f"status.control.tokens.{name}"
            yield Problem(key, "a string", f"{TOKEN_LENGTH_MIN} characters or more")


def _tls_problems(config: Config) -> Iterator[Problem]:
    several = isinstance(config.target, tuple)
    for number, part in enumerate(config.targets):
        if part.port.tls is not None:
            key = f"target[{number}].tls" if several else "target.tls"
            yield from _unusable_files(part.port.tls, key)
    if config.status.enabled and config.status.tls is not None:
        yield from _unusable_files(config.status.tls, "status.tls")


def _unusable_files(tls: Tls, key: str) -> Iterator[Problem]:
    missing = False
    files = {"certificate": tls.certificate, "key": tls.key, "client-ca": tls.client_ca}
    for name, file in files.items():
        try:
            if file is not None:
                file.open("rb").close()
        except OSError as error:
            missing = True
            expected = f"a file that this user can read ({system_reason(error)})"
            yield Problem(f"{key}.{name}", json.dumps(str(file), ensure_ascii=False), expected)
    if missing:
        return
    try:
        server_context(tls)
    except OlrPgError as error:
        expected = (
            "PEM files, the private key of the certificate, and `key-password` if the key is"
            " encrypted"
        )
        reason = f"{error.detail}: {error.where['file']}"
        yield Problem(key, f"files that TLS cannot use ({reason})", expected)


_KEPT: Final = frozenset(
    {
        *("HOME", "HOSTNAME", "JAVA_HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR"),
        *("TNS_ADMIN", "TZ", "USER", "XDG_CACHE_HOME"),
    }
)
"""Variables that are not removed, even if the configuration refers to them, because programs need
them.
"""


class Environment(Mapping[str, str]):
    """The environment at the time when the object was created. The object records which variables
    are read.

    Attributes:
        named: names of the variables that were read.
    """

    def __init__(self) -> None:
        self._values = dict(os.environ)
        self.named: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.named.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def withheld(self) -> dict[str, str]:
        """Return the variables that were read, for a child process that reads the same
        configuration.
        """
        return {name: self._values[name] for name in self.named if name in self._values}

    def withhold(self) -> None:
        """Remove the variables that were read from the process's environment, so that child
        processes do not inherit them.
        """
        for name in self.named - _KEPT:
            os.environ.pop(name, None)


def load_for_work(path: Path | str, environment: Environment | None = None) -> Config:
    """Load the configuration for a command whose child processes must not inherit its secrets.

    Args:
        environment: the environment that an earlier load used, if the file is loaded again.

    Raises:
        OlrPgError: as `load_config`.
    """
    environment = environment or Environment()
    config = load_config(path, environment)
    environment.withhold()
    return config
