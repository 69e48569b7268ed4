"""Defines the sections of the configuration and the types of their fields: each converts a JSON
value, or reports why it cannot.

Errors are `PydanticCustomError` of type `PROBLEM` or `SECRET_PROBLEM`; their text describes the
expected value. `config.reading` formats them. Errors never contain values of secrets.

A value can refer to a secret: ``${ENV_NAME}`` inside a text, and ``file:PATH`` or ``{"file":
PATH}`` as a whole value. The value of a reference is not searched for further references, so a
secret can contain any character. To write a literal ``${``, write ``$${``. A single line break at
the end of a secret file is not part of the secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Final, Literal
from zlib import crc32
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    SecretStr,
    Tag,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from olr_pg.config.address import Address, Network, parse_address
from olr_pg.config.table_patterns import (
    OWN_SCHEMA,
    TableName,
    TablePattern,
    configured_table_name,
    parse_pattern,
)
from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.text import encode_text
from olr_pg.errors import OlrPgError, system_reason


class Section(BaseModel):
    """A JSON object of the configuration file."""

    model_config = ConfigDict(
        alias_generator=lambda name: name.replace("_", "-"),
        extra="forbid",
        frozen=True,
        strict=True,
        validate_by_alias=True,
        validate_by_name=False,
        loc_by_alias=True,
        hide_input_in_errors=True,
    )


_REFERENCE: Final = re.compile(r"\$(\$\{)|\$\{([^}]*)\}")
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE_SIZE_MAX: Final = 64 * 1024


class UnresolvedSecretError(ValueError):
    """Raised for a secret reference that cannot be resolved; its text never contains a secret."""


def expand_environment(text: str, environ: Mapping[str, str]) -> str:
    """Return `text` with every ``${ENV_NAME}`` replaced by the variable's value.

    Raises:
        UnresolvedSecretError: a variable is not set or empty, or its name is malformed.
    """

    def value(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal:
            return "${"
        if not _ENV_NAME.fullmatch(name):
            raise UnresolvedSecretError("a ${…} reference without a valid variable name")
        if not environ.get(name):
            state = "is empty" if name in environ else "is not set"
            raise UnresolvedSecretError(f"the environment variable {name} {state}")
        return environ[name]

    return _REFERENCE.sub(value, text)


def read_secret_file(path: Path) -> str:
    """Read a secret from a file.

    Raises:
        UnresolvedSecretError: the file cannot be read, is empty, too long or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_SIZE_MAX + 1)
    except OSError as error:
        raise UnresolvedSecretError(
            f"the secret file {path} cannot be read ({system_reason(error)})"
        ) from error
    if len(content) > _FILE_SIZE_MAX:
        raise UnresolvedSecretError(f"the secret file {path} is longer than {_FILE_SIZE_MAX} bytes")
    try:
        text = content.decode("utf-8-sig")  # editors on Windows write a byte order mark
    except UnicodeDecodeError:
        # Do not chain the cause, because its text contains bytes of the secret.
        raise UnresolvedSecretError(f"the secret file {path} is not UTF-8 text") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise UnresolvedSecretError(f"the secret file {path} is empty")
    return text


def resolve_secret(value: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Resolve the references to secrets in a text of the configuration; a relative file path starts
    at `folder`.

    Raises:
        UnresolvedSecretError: a variable is not set, or the file cannot be read.
    """
    if value.startswith("file:"):
        path = expand_environment(value.removeprefix("file:"), environ)
        return read_secret_file(folder / path.removeprefix("//"))
    return expand_environment(value, environ)


_OFFSET: Final = re.compile(r"[+-]\d{1,2}:\d{2}")
_MASTER: Final = re.compile(
    r"local(\[(\*|0*[1-9]\d*)\s*(,\s*\d+)?\])?$|local-cluster\[|(spark|k8s|mesos)://.|yarn$"
)

_VERSION: Final = re.compile(r"v?([0-9]{1,9})(?:\.[0-9]{1,9})*(?:[-+][0-9A-Za-z.+-]{1,64})?")
_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_SECRET_PROPERTY: Final = re.compile(r"password|secret|token|credential|key$", re.IGNORECASE)
_PLACE_PROPERTY: Final = re.compile(r"(file|path|dir|ur[il])$", re.IGNORECASE)

PROBLEM: Final = "olr_pg_problem"
SECRET_PROBLEM: Final = "olr_pg_secret"  # noqa: S105 - an error type


@dataclass(frozen=True, slots=True)
class LoadContext:
    """The folder and the environment that are needed to resolve relative paths and secret
    references.

    Attributes:
        folder: the folder of the file, at which relative paths start.
        environ: the environment variables for ``${ENV_NAME}``.
        needs_secrets: whether a secret that cannot be resolved is an error. If False, another text
            takes the place of the secret (`_stand_in`).
    """

    folder: Path = field(default_factory=Path.cwd)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    needs_secrets: bool = True


def problem(
    expected: str, *, show: Literal["value", "kind", "nothing"] = "value"
) -> PydanticCustomError:
    """Return the error for an unexpected value; `show` determines how much of the value may be
    printed.
    """
    return PydanticCustomError(PROBLEM, "expected {expected}", {"expected": expected, "show": show})


def _context(info: ValidationInfo) -> LoadContext:
    return info.context if isinstance(info.context, LoadContext) else LoadContext()


def _stand_in(value: object) -> str:
    """Return a text that stands for a secret that cannot be resolved and is not needed.

    The text is valid in each place where a secret can be, also as a connect string of PostgreSQL,
    and differs for different values.
    """
    if isinstance(value, str) and not value.startswith("file:"):
        text = _REFERENCE.sub(lambda match: match[1] or match[2], value)
        if text != value and not _REFERENCE.fullmatch(value):
            return text
    return f"user=u{crc32(str(value).encode()):08x}"


def _secret(value: object, info: ValidationInfo) -> object:
    context = _context(info)
    try:
        match value:
            case SecretStr():
                return value
            case str() if value:
                return resolve_secret(value, context.folder, context.environ)
            case {"file": str(path), **others} if path and not others:
                return read_secret_file(context.folder / path)
            case _:
                raise problem(
                    'a string that is not empty, "${ENV_NAME}", "file:PATH" or {"file": "PATH"}',
                    show="kind",
                )
    except UnresolvedSecretError as error:
        if not context.needs_secrets:
            return _stand_in(value)
        raise PydanticCustomError(SECRET_PROBLEM, "{reason}", {"reason": str(error)}) from error


Secret = Annotated[
    SecretStr,
    BeforeValidator(_secret),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "object",
                    "properties": {"file": {"type": "string"}},
                    "required": ["file"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


class _NoReference(str):
    """A text that is not a reference to a secret file, even if it begins with ``file:``."""

    __slots__ = ()


def _settings(value: object) -> object:
    """Mark the texts of properties that contain no secret. In these, ``file:`` begins a URL, not a
    reference to a secret file.
    """
    if not isinstance(value, dict):
        return value
    return {
        key: _NoReference(one) if isinstance(one, str) and not is_secret_property(key) else one
        for key, one in value.items()
    }


def is_secret_property(key: object) -> bool:
    """Return whether a Spark property of that name contains a secret."""
    return bool(_SECRET_PROPERTY.search(str(key))) and not _PLACE_PROPERTY.search(str(key))


def _setting(value: object, info: ValidationInfo) -> object:
    match value:
        case _NoReference():
            try:
                return expand_environment(value, _context(info).environ)
            except UnresolvedSecretError as error:
                if not _context(info).needs_secrets:
                    return _stand_in(value)
                raise PydanticCustomError(
                    SECRET_PROBLEM, "{reason}", {"reason": str(error)}
                ) from error
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case str():
            return _secret(value, info) if value else value
        case {"file": str(path), **others} if path and not others:
            return _secret(value, info)
        case _:
            raise problem("a string, a number or a boolean", show="kind")


Setting = Annotated[
    str,
    BeforeValidator(_setting),
    WithJsonSchema({"type": ["string", "number", "boolean", "object"]}),
]
"""A value of `spark.conf`; it can contain ``${ENV_NAME}`` and is never printed."""

Settings = Annotated[dict[str, Setting], BeforeValidator(_settings)]
"""The object `spark.conf`."""


def _plain(value: str) -> str:
    """Reject a reference such as ``${NAME}`` where no secret is expected. Nothing would replace
    this reference, so olr_pg would use a user, a host or a directory with this text as its name.
    """
    if _VARIABLE.search(value):
        raise problem(
            "a text without ${…}, because variables are replaced only in secrets; the key's own"
            " environment variable (OLR_PG_SOURCE__USER for source.user) sets it from outside"
        )
    return value


PlainText = Annotated[str, AfterValidator(_plain)]
"""A text that is no secret, and so cannot contain a reference."""


def _server(value: str) -> str:
    if not value or "@" in value:
        raise problem(
            "host:port/service, without user and password, which have their own keys", show="kind"
        )
    return _plain(value)


OracleServer = Annotated[str, AfterValidator(_server)]


def _path(value: object, info: ValidationInfo) -> object:
    match value:
        case Path():
            return value
        case str() if "://" in value:
            raise problem(
                "a path, not a URL: only olr-pg decode and the data source accept URLs", show="kind"
            )
        case str() if value and "\x00" not in value:
            try:
                return _normal(_context(info).folder / Path(_plain(value)).expanduser())
            except RuntimeError:  # ~user of a user without a home directory
                raise problem("a path below an existing home directory") from None
        case _:
            raise problem("a path (a string that is not empty)")


def _normal(path: Path) -> Path:
    """Return the path without ``..``, unless it would then lead elsewhere because of a symbolic
    link.
    """
    shorter = Path(os.path.normpath(path))
    return shorter if os.path.realpath(shorter) == os.path.realpath(path) else path


ConfigPath = Annotated[
    Path,
    BeforeValidator(_path),
    Field(strict=False),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
"""A path in the configuration file; a relative path starts at the folder of the file."""


def _one_or_many(value: object) -> object:
    match value:
        case str() | Path():
            return [value]
        case []:
            raise problem("at least one path")
        case list() | tuple():
            return value
        case _:
            raise problem("a path or a list of paths")


ConfigPaths = Annotated[
    tuple[ConfigPath, ...],
    BeforeValidator(_one_or_many),
    Field(strict=False),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
            ]
        }
    ),
]


def _address(value: object) -> Address:
    if isinstance(value, Address):
        return value
    try:
        return parse_address(value if isinstance(value, str) else "")
    except ValueError as error:
        reason = f" ({error})" if isinstance(value, str) else ""
        raise problem(f'"host:port", ":port" or "[IPv6]:port"{reason}') from error


ConfigAddress = Annotated[
    Address, PlainValidator(_address), PlainSerializer(str), WithJsonSchema({"type": "string"})
]


def _networks(value: object) -> tuple[Network, ...]:
    match value:
        case list() | tuple() if value:
            return tuple(_network(item) for item in value)
        case _:
            raise problem("a list of addresses or networks")


def _network(value: object) -> Network:
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    try:
        # Accept only text: ip_network would also accept a number.
        return ip_network(value if isinstance(value, str) else "")
    except ValueError as error:
        raise problem('an address ("10.0.0.7") or a network ("10.0.0.0/8")') from error


ConfigNetworks = Annotated[
    tuple[Network, ...],
    PlainValidator(_networks),
    PlainSerializer(lambda networks: [str(network) for network in networks]),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 1}),
]


def _table(value: object) -> TableName:
    if isinstance(value, TableName):
        return value
    try:
        return configured_table_name(value if isinstance(value, str) else "")
    except ValueError as error:
        raise problem('a table as OWNER.NAME or "Owner"."Name"') from error


def _quoted(table: TableName) -> str:
    return f'"{table.owner}"."{table.name}"'


def _listed(value: object) -> TableName | TablePattern:
    if isinstance(value, str):
        try:
            pattern = parse_pattern(value)
        except ValueError as error:
            raise problem(
                f"a table as OWNER.NAME, or a pattern of it with *, ? and [abc] ({error})"
            ) from error
        if pattern is not None:
            return pattern
        if "%" in re.sub(r'"[^"]*"', "", value):
            raise problem(
                "a table as OWNER.NAME, or a pattern of it, where * stands for any"
                " characters (put a name that contains % in double quotes)"
            )
    return value if isinstance(value, TablePattern) else _table(value)


def _written(table: TableName | TablePattern) -> str:
    return str(table) if isinstance(table, TablePattern) else _quoted(table)


ListedTable = Annotated[
    TableName | TablePattern,
    PlainValidator(_listed),
    PlainSerializer(_written),
]
"""An entry of `apply.tables`."""

_TABLE_KINDS: Final = "a TableList query (SELECT …) or a list of OWNER.NAME and patterns of it"


def _tables(value: object) -> object:
    match value:
        case str() if value.strip().lower().startswith(("select", "with", "(", "--", "/*")):
            return value
        case list() | tuple() if value:
            return tuple(value)
        case _:
            raise problem(_TABLE_KINDS)


def _some_found(tables: tuple[TableName | TablePattern, ...]) -> object:
    if all(isinstance(one, TablePattern) and one.excluded for one in tables):
        raise problem("also a table or a pattern that does not begin with !", show="nothing")
    return tables


TABLES: Final = (
    "a TableList query, or a list of OWNER.NAME and patterns of it (* ? [abc]); a"
    " pattern that begins with ! excludes tables that other patterns match"
)

ConfigTables = Annotated[
    Annotated[str, Tag("query")]
    | Annotated[
        tuple[ListedTable, ...], AfterValidator(_some_found), Field(strict=False), Tag("names")
    ],
    Discriminator(lambda value: "query" if isinstance(value, str) else "names"),
    BeforeValidator(_tables),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]
        }
    ),
]


_ANOTHER_SCHEMA: Final = f"a schema other than {OWN_SCHEMA}, which contains the appliance's ledger,"


def _schema_mapping(value: dict[str, str]) -> dict[str, str]:
    for owner, schema in value.items():
        if schema == OWN_SCHEMA:
            raise problem(f"{_ANOTHER_SCHEMA} as the target of {owner}", show="nothing")
    return value


SchemaMapping = Annotated[dict[str, str], AfterValidator(_schema_mapping)]


def _table_mapping(value: dict[str, str]) -> dict[str, str]:
    mapping = dict[str, str]()
    for key, target in value.items():
        try:
            name = str(configured_table_name(key))
        except ValueError as error:
            raise problem(
                f"a table as OWNER.NAME for every key, but {key!r} is not one", show="nothing"
            ) from error
        schema, dot, table = target.partition(".")
        if not (schema and dot and table):
            raise problem(f"schema.table as the target of {name}", show="nothing")
        if schema == OWN_SCHEMA:
            raise problem(f"{_ANOTHER_SCHEMA} as the target of {name}", show="nothing")
        if name in mapping:
            raise problem(f"each table once, but {name} is given twice", show="nothing")
        mapping[name] = target
    return mapping


TableMapping = Annotated[dict[str, str], AfterValidator(_table_mapping)]

_MAPPING_FORMS: Final = (
    'pairs of paths: {"/from": "/to"}, ["/from", "/to", …] or [["/from", "/to"], …]'
)


def _path_mapping(value: object, info: ValidationInfo) -> object:
    match value:
        case dict():
            pairs = list(value.items())
        case list() | tuple() if all(isinstance(item, str) for item in value):
            if len(value) % 2:
                raise problem(_MAPPING_FORMS)
            pairs = list(zip(value[::2], value[1::2], strict=True))
        case list() | tuple():
            pairs = [tuple(item) if isinstance(item, list | tuple) else (item,) for item in value]
        case _:
            raise problem(_MAPPING_FORMS)
    if not all(len(pair) == 2 and all(isinstance(p, str) and p for p in pair) for pair in pairs):
        raise problem(_MAPPING_FORMS)
    # Do not use `Path`, because it removes a separator at the end of a prefix, and that separator
    # matters.
    folder = _context(info).folder
    return tuple((there, os.path.join(folder, _plain(here))) for there, here in pairs)  # noqa: PTH118


PathMapping = Annotated[
    tuple[tuple[str, str], ...],
    BeforeValidator(_path_mapping),
    Field(strict=False),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "object", "additionalProperties": {"type": "string"}},
                {"type": "array", "items": {"type": "string"}},
                {
                    "type": "array",
                    "items": {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 2,
                        "maxItems": 2,
                    },
                },
            ]
        }
    ),
]
"""Pairs (path in Oracle, path on this host); the first matching prefix is used.

A relative path on this host starts at the folder of the configuration file.
"""


def _true_charsets(value: dict[str, str]) -> dict[str, str]:
    for pattern, name in value.items():
        try:
            is_usable = encode_text(" ", charset(name)) == b" "
        except OlrPgError:
            is_usable = False
        if not is_usable:
            raise problem(
                "the Oracle name of a supported character set in which a blank is the byte 20, such"
                " as WE8MSWIN1252, CL8MSWIN1251, AL32UTF8 or ZHS16GBK (charsets.md), for"
                f" {pattern!r}, but found {name!r}",
                show="nothing",
            )
    return value


TrueCharsets = Annotated[dict[str, str], AfterValidator(_true_charsets)]
"""The object `source.character-sets`: pattern of OWNER.NAME.COLUMN → Oracle name of a character
set.
"""


READS_VERSION: Final = 1
"""The newest major version of the configuration that this program supports.

The minor version of a file is ignored: a newer minor version only adds keys, and a key that this
program does not know is reported as unknown.
"""


def major_version(value: object) -> int | None:
    """Return the major version from a file's `version`; None if it is invalid.

    Args:
        value: a number, or a text such as "1", "1.2", "v1.2.3", "1.3.0-beta".
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    found = _VERSION.fullmatch(str(value))
    return int(found[1]) if found else None


def _version(value: object) -> object:
    if major_version(value) is None:
        raise problem('a version: numbers with dots, such as "1.0" or "1.2.3"')
    return str(value)


Version = Annotated[str, BeforeValidator(_version), WithJsonSchema({"type": ["string", "number"]})]


def _timezone(value: str) -> str:
    if _OFFSET.fullmatch(value.strip()):
        return value
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise problem('an offset such as "+02:00" or a region such as "Europe/Berlin"') from None
    return value


Timezone = Annotated[str, AfterValidator(_timezone)]


def _spark_master(value: str) -> str:
    if _MASTER.match(value):
        return value
    raise problem(
        'a Spark master: "local", "local[N]", "local[N,F]", "spark://…", "yarn", "k8s://…"'
    )


SparkMaster = Annotated[str, AfterValidator(_spark_master)]
