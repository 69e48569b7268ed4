"""Reads a configuration file: parses it, applies environment variables, and describes each error.

The file is JSON with two additions from JSON5: comments (``//`` and ``/* */``) and trailing commas.
JSON5 was chosen because it is a published format with a maintained parser. The alternatives were
"$comment" keys, which cannot stand inside a list or beside a single value, and our own code that
removes comments. The plain JSON of OpenLogReplicator (OLR) is a subset of JSON5. A file whose name
ends with ``.toml`` is TOML.

Environment variables override keys: ``OLR_PG_CONTEXT__MEMORY__MAX_MB=1024``. The name of a variable
is ``OLR_PG_``, followed by the parts of the key in capitals, with ``_`` for ``-``, joined by
``__``. A part that is a number is an index in a list. Variables without ``__`` have other purposes.
If the key accepts text, the value is plain text; otherwise it is JSON. Objects and lists are always
JSON.

An error of the text names the line, so that the reader finds the place in an editor. An error of a
value names the key as the file contains it, the value that was found, and what was expected.
"""

from __future__ import annotations

import copy
import difflib
import json
import os
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

import json5
from pydantic import BaseModel, SecretStr, ValidationError

from olr_pg.config.fields import PROBLEM, READS_VERSION, SECRET_PROBLEM, LoadContext, major_version
from olr_pg.config.model import DATA, ONE_TARGET, SEVERAL_TARGETS, Config, NamedTarget, Target
from olr_pg.config.source_section import SOURCE_KIND, OfflineSource, OracleSource
from olr_pg.errors import Code, OlrPgError, system_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails


BYTES_MAX: Final = 16 << 20
"""Maximum size of a configuration file. A larger file was passed by mistake."""

_UTF_16: Final = b"\xff\xfe", b"\xfe\xff"
"""The byte order marks that begin a file in UTF-16."""

_YAML: Final = frozenset({".yaml", ".yml"})

_TOKEN: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<sign>[{}\[\]])|(?P<name>[\w$]+)""",
    re.DOTALL,
)
_COLON: Final = re.compile(r"\s*:")
_ESCAPE: Final = re.compile(
    r"""\\(?:(?P<known>["'\\/bfnrtv\n\r\u2028\u2029]|0(?![0-9])|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})|.)""",
    re.DOTALL,
)
"""Matches a backslash and what follows it. The group `known` matches the escapes that JSON5 defines
(its section 5.1). Before any other character, JSON5 only drops the backslash.
"""

_JSON5_PLACE: Final = re.compile(r"<string>:(\d+) (.*) at column (\d+)", re.DOTALL)
"""The form of the JSON5 parser's messages."""


class _SyntaxProblem(Exception):  # noqa: N818 - it is a problem of the file, not of the program
    """Raised for a text that is neither JSON nor TOML; its text says where and what is wrong."""


def read_text(path: Path) -> str:
    """Read a configuration file.

    Raises:
        OlrPgError: 1001, the file cannot be read, is too large or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise OlrPgError(Code.CONFIG_UNREADABLE, system_reason(error), file=str(path)) from error
    if len(content) > BYTES_MAX:
        raise OlrPgError(
            Code.CONFIG_UNREADABLE,
            f"the file is larger than {BYTES_MAX >> 20} MiB, so it is not a configuration file",
            file=str(path),
            action="check the path given with --config or --file",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = (
            "the file contains UTF-16 text"
            if content.startswith(_UTF_16)
            else "the file does not contain UTF-8 text"
        )
        raise OlrPgError(
            Code.CONFIG_UNREADABLE,
            what,
            file=str(path),
            line=content.count(b"\n", 0, error.start) + 1,
            offset=error.start,
            action="save the file as UTF-8",
        ) from error


def parse_syntax(text: str, file: str) -> Any:
    """Parse the text of a configuration file.

    Args:
        file: the name of the file; the suffix ``.toml`` means TOML.

    Raises:
        ConfigError: 1002, the text cannot be parsed.
    """
    hint = ""
    try:
        if file.endswith(".toml"):
            return _parse_toml(text)
        # Try plain JSON first: the JSON5 parser is written in Python and a hundred times slower.
        try:
            return json.loads(text, object_pairs_hook=_object)
        except (ValueError, RecursionError):
            if Path(file).suffix.lower() in _YAML:
                hint = "; YAML is not supported, write JSON or TOML"
            return _parse_json5(text)
    except _SyntaxProblem as error:
        problem = Problem("", None, f"{error}{hint}")
    raise ConfigError(Code.CONFIG_INVALID, (problem,), file)


def _parse_toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except RecursionError:
        reason = "the tables are nested too deeply"
    except tomllib.TOMLDecodeError as error:
        end = f"at line {text.rstrip().count(chr(10)) + 1}, the end of the file"
        reason = str(error).replace("at end of document", end)
    raise _SyntaxProblem(f"expected TOML: {reason}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its members. Raise an error for a duplicate key; the text is then parsed
    as JSON5, where `_check_keys` reports the key.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _parse_json5(text: str) -> Any:
    if not text.strip():
        raise _SyntaxProblem("the file is empty")
    _check_escapes(text)
    _check_keys(text)
    try:
        return json5.loads(text, allow_duplicate_keys=False)
    except ValueError as error:
        reason = str(error)
        place = _JSON5_PLACE.fullmatch(reason)
        if place is not None:
            line, words, column = place.groups()
            reason = f"line {line}, column {column}: {words[:1].lower()}{words[1:]}"
    except RecursionError:
        reason = "the objects are nested too deeply"
    raise _SyntaxProblem(f"expected JSON (comments and trailing commas allowed): {reason}")


def _check_escapes(text: str) -> None:
    """Reject a backslash that begins no escape. JSON5 ignores such a backslash, so a password or a
    path would silently lose it.
    """
    for token in _TOKEN.finditer(text):
        for escape in _ESCAPE.finditer(token["string"] or ""):
            if escape["known"] is None:
                raise _SyntaxProblem(
                    f"expected JSON: {_spot(text, token.start('string') + escape.start())}: a"
                    " backslash in a text that begins no escape. If the text contains a"
                    " backslash, write it twice"
                )


def _check_keys(text: str) -> None:
    """Reject an object with two equal keys, because the parsers would not report their line."""
    objects: list[dict[str, int] | None] = []
    for token in _TOKEN.finditer(text):
        sign, name = token["sign"], token["name"] or (token["string"] or "")[1:-1]
        if sign in ("{", "["):
            objects.append({} if sign == "{" else None)
        elif sign:
            del objects[-1:]
        elif name and objects and objects[-1] is not None and _COLON.match(text, token.end()):
            first = objects[-1].setdefault(name, token.start())
            if first != token.start():
                raise _SyntaxProblem(
                    f"expected JSON: {_spot(text, token.start())}: the key {json.dumps(name)}"
                    f" is already in line {text.count(chr(10), 0, first) + 1}"
                )


def _spot(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"


_SOURCES: Final[dict[str, type[BaseModel]]] = {"oracle": OracleSource, "offline": OfflineSource}

_SECRET_KEYS: Final = re.compile(r"password|passwd|secret|token|connect|^conf$", re.IGNORECASE)
_SECRET_TEXTS: Final = re.compile(r"password|passwd|secret|://|@|\n", re.IGNORECASE)
_SHOWN_LENGTH_MAX: Final = 80

_KINDS: Final[dict[type, str]] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    SecretStr: "a string (not shown)",
}

_EXPECTED: Final[dict[str, str]] = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "string_type": "a string",
    "string_too_short": "a string that is not empty",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "tuple_type": "a list",
    "too_short": "a list that is not empty",
    "list_type": "a list",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "string_pattern_mismatch": "a string that fits {pattern}",
    PROBLEM: "{expected}",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in the configuration file.

    Attributes:
        key: the path of the key, such as ``source.logs[1]``; empty for the whole file.
        found: the value that was found; None if it does not help or must not be printed.
        expected: a description of the expected value.
        secret: whether the problem is a secret reference that could not be resolved.
    """

    key: str
    found: str | None
    expected: str
    secret: bool = False

    def __str__(self) -> str:
        text = f"found {self.found}, expected {self.expected}" if self.found else self.expected
        return f"{self.key}: {text}" if self.key else text


def describe_problems(errors: Iterable[ErrorDetails], data: object) -> tuple[Problem, ...]:
    """Return descriptions of the errors that the validation of `data` has found, in the same
    order.
    """
    found = list(errors)
    return tuple(_describe(error, data) for error in found if not _follows(error, found))


def _follows(error: ErrorDetails, others: Sequence[ErrorDetails]) -> bool:
    """Return whether an error says only that a list is too short, because one of its items is
    invalid; another error reports that item.
    """
    depth = len(error["loc"])
    return error["type"] == "too_short" and any(
        len(other["loc"]) > depth and other["loc"][:depth] == error["loc"] for other in others
    )


def _describe(error: ErrorDetails, data: object) -> Problem:
    location = _file_location(error["loc"], data)
    key = format_key(location)
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return Problem(key, None, _unknown_key(location, data))
        case "missing":
            return Problem(key, None, f"missing, expected {_description(location, data)}")
        case kind if kind == SECRET_PROBLEM:
            return Problem(key, None, context["reason"], secret=True)
        case kind if kind == SOURCE_KIND:
            found = error["input"].get("kind") if isinstance(error["input"], dict) else None
            expected = '"oracle" or "offline"' + _nearest(found, _SOURCES)
            return Problem("source.kind", _show(found, location), expected)
        case "union_tag_invalid":
            expected = context["expected_tags"].replace("'", '"')
            expected += _nearest(context["tag"], re.findall(r'"([^"]*)"', expected))
            return Problem(f"{key}.kind", _show(context["tag"], location), expected)
        case "union_tag_not_found":
            expected = _description((*location, "kind"), data)
            return Problem(f"{key}.kind", None, f"missing, expected {expected}")
    expected = _EXPECTED.get(error["type"], error["msg"]).format_map(context)
    if error["type"] == "literal_error":
        expected = expected.replace("'", '"') + _nearest(
            error["input"], re.findall(r"'([^']*)'", context["expected"])
        )
    if context.get("show") == "nothing":
        return Problem(key, None, f"expected {expected}")
    if context.get("show") == "kind":
        return Problem(key, _kind(error["input"]), expected)
    wants_scalar = error["type"] not in {"dict_type", "model_type", "tuple_type", "list_type"}
    found = _show(error["input"], location) if wants_scalar else _kind(error["input"])
    return Problem(key, found, expected)


def format_key(location: Sequence[int | str]) -> str:
    """Return the key for a location of pydantic: ``source.logs[1]`` for ("source", "logs", 1)."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


def _file_location(location: tuple[int | str, ...], data: object) -> tuple[int | str, ...]:
    """Return `location` without the parts that pydantic adds and the file does not contain: tags of
    union types, and marks of mapping keys.
    """
    kept = list[int | str]()
    tagged = None
    for number, part in enumerate(location):
        if part in (ONE_TARGET, SEVERAL_TARGETS):
            continue
        if isinstance(data, dict) and data is not tagged and part == data.get("kind", "oracle"):
            tagged = data  # the next part can be a key of the same name
            continue
        last = number == len(location) - 1
        if isinstance(data, dict) and (part in data or last) and part != "[key]":
            data = data.get(part)
        elif isinstance(data, list | tuple) and isinstance(part, int):
            data = data[part] if part < len(data) else None
        else:
            continue
        kept.append(part)
    return tuple(kept)


def _kind(value: object) -> str:
    return "null" if value is None else _KINDS.get(type(value), type(value).__name__)


def _show(value: object, location: Sequence[int | str]) -> str:
    if any(_SECRET_KEYS.search(str(part)) for part in location):
        return _kind(value)
    if isinstance(value, str):
        if may_hide_secret(value):
            return "a string (not shown)"
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if isinstance(value, bool | int | float) else _kind(value)


def may_hide_secret(text: str) -> bool:
    """Return whether a text may contain a secret, so that it must not be printed. Every long text
    may.
    """
    return bool(_SECRET_TEXTS.search(text)) or len(text) > _SHOWN_LENGTH_MAX


def _nearest(word: object, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.6)
    return f' (did you mean "{matches[0]}"?)' if matches else ""


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    return {field.serialization_alias or name: field for name, field in fields.items()}


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _model_at(location: Sequence[int | str], data: object) -> type[BaseModel] | None:
    """Return the model of the object at `location`; None if it can have any keys."""
    model: type[BaseModel] = Config
    is_name = False
    for part in location:
        if is_name:  # of an entry of an object whose keys are names
            data = data.get(part) if isinstance(data, dict) else None
            is_name = False
            continue
        if isinstance(part, int):
            data = data[part] if isinstance(data, list) and part < len(data) else None
            continue
        data = data.get(part) if isinstance(data, dict) else None
        field = _fields(model).get(str(part))
        models = _models(field.annotation) if field else []
        if not models:
            return None
        if Target in models:
            model = NamedTarget if isinstance(data, list) else Target
            continue
        kind = data.get("kind", "oracle") if isinstance(data, dict) else "oracle"
        model = next((one for one in models if kind in _kinds_of(one)), models[0])
        is_name = field is not None and get_origin(field.annotation) is dict
    return model


def _kinds_of(model: type[BaseModel]) -> tuple[object, ...]:
    field = model.model_fields.get("kind")
    return get_args(field.annotation) if field else ()


def _unknown_key(location: Sequence[int | str], data: object) -> str:
    model = _model_at(location[:-1], data)
    known = sorted(_fields(model)) if model else []
    name = str(location[-1])
    if nearest := _nearest(name.replace("_", "-").lower(), known):
        return f"unknown key{nearest}"
    if model in _SOURCES.values():
        for kind, other in _SOURCES.items():
            if name in _fields(other):
                return f'unknown key here; it belongs to "kind": "{kind}"'
    return f"unknown key; known here: {', '.join(known)}" if known else "unknown key"


def _description(location: Sequence[int | str], data: object) -> str:
    model = _model_at(location[:-1], data)
    field = _fields(model).get(str(location[-1])) if model else None
    return (field.description if field else None) or "a value"


_DATA_BEFORE: Final = "data"
"""The default of `context.data` in olr_pg up to version 0.1."""

_STATE: Final = ("checkpoint.json", "targets", "postgres")
"""Names of files and directories by which the state of an earlier run in `context.data` is
recognised.
"""


_OF_FILE: Final = (
    "correct the file there, then check it with `olr-pg config check --config {}`. `olr-pg init`"
    " writes a new one, and configs/ holds a commented example of each kind"
)
"""The action to report, without the file's name, if the text of the file is wrong. (If the value of
a key is wrong, another action is reported.)
"""


class ConfigError(OlrPgError):
    """Raised if the configuration is invalid; `problems` contains all problems."""

    def __init__(self, code: int, problems: tuple[Problem, ...], file: str | None) -> None:
        self.problems = problems
        lines = [str(problem) for problem in problems]
        count = f"{len(lines)} problems" if len(lines) > 1 else lines[0]
        detail = "\n  ".join([count, *(lines if len(lines) > 1 else [])])
        is_of_file = code == Code.CONFIG_INVALID and not any(one.key for one in problems)
        action = _OF_FILE.format(shlex.quote(file or "FILE")) if is_of_file else None
        super().__init__(code, detail, action=action, file=file)

    def __reduce__(self) -> tuple[object, ...]:
        return (ConfigError, (self.code, self.problems, self.where.get("file")))


def load_config(
    path: Path | str, environ: Mapping[str, str] | None = None, *, secrets: bool = True
) -> Config:
    """Read the configuration file at `path`, resolve its secrets, and make its paths absolute.

    Args:
        path: the path of the file; relative paths in it start at its folder.
        environ: the environment for ``${ENV_NAME}`` and for overrides of keys; default: this
            process's environment.
        secrets: whether the command uses secrets. If False, a secret that cannot be resolved is
            replaced by a text that gives access to nothing.

    Raises:
        OlrPgError: 1001 the file cannot be read, 1002 it is invalid, 1003 a secret cannot be
            resolved, 1121 a newer version of olr_pg is needed for it, 1122 the default of
            `context.data` differs from the one that earlier runs used, 8015 the changes of `olr-pg
            tables` cannot be read.
    """
    path = Path(path)
    variables = os.environ if environ is None else environ
    data = read_values(path, variables)
    folder = Path(os.path.abspath(path)).parent  # noqa: PTH100 - links stay as the user named them
    context = LoadContext(folder, variables, needs_secrets=secrets)
    config = _validated(data, context, str(path))
    _check_state(config, folder, str(path))
    return config.with_table_changes().of_file(str(folder / path.name))


def read_values(path: Path, environ: Mapping[str, str] = os.environ) -> Any:
    """Read the file at `path`, and apply the variables that override keys. Do not validate the
    values, and resolve no secrets.

    Raises:
        OlrPgError: 1001 the file cannot be read, 1002 it is neither JSON nor TOML.
    """
    return _overridden(parse_syntax(read_text(path), str(path)), environ, str(path))


def parse_text(
    text: str, folder: Path, environ: Mapping[str, str] | None = None, *, file: str
) -> Config:
    """Parse the text of a configuration file that will be written to `file` in `folder`.

    Variables that override keys are ignored.

    Raises:
        ConfigError: 1002, 1003, 1121, as `parse_config`.
    """
    return parse_config(parse_syntax(text, file), folder, environ, file=file)


def parse_config(
    data: Any,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    *,
    file: str | None = None,
) -> Config:
    """Validate a configuration that is given as a JSON value, and resolve its secrets.

    Raises:
        ConfigError: 1002 the configuration is invalid, 1003 a secret cannot be resolved, 1121 the
            configuration needs a newer version of olr_pg.
    """
    context = LoadContext(folder, os.environ if environ is None else environ)
    return _validated(data, context, file)


def _validated(data: Any, context: LoadContext, file: str | None) -> Config:
    """Validate a configuration.

    Raises:
        ConfigError: as `parse_config`.
    """
    _check_version(data, file)
    try:
        return Config.model_validate(data, context=context)
    except ValidationError as error:
        problems = describe_problems(error.errors(include_url=False), data)
    # Raise the error outside the `except` block: otherwise the ValidationError would be chained to
    # it, and that contains the input with its secrets.
    code = (
        Code.SECRET_UNRESOLVED
        if all(problem.secret for problem in problems)
        else Code.CONFIG_INVALID
    )
    raise ConfigError(code, problems, file)


def one_target(config: Config, name: str | None) -> Config:
    """Return the configuration of one target.

    Args:
        name: the name of the target; None for the only target.

    Raises:
        OlrPgError: 1105 `name` is None and there are several targets, 1106 no target has that name.
    """
    known = {part.name: part for part in config.targets}
    names = ", ".join(filter(None, known))
    if name is None:
        if len(known) > 1:
            raise OlrPgError(Code.SEVERAL_TARGETS, f"the targets are {names}")
        return next(iter(known.values()))
    if not name or name not in known:
        raise OlrPgError(
            Code.UNKNOWN_TARGET,
            f"{name!r}; {f'the targets are: {names}' if names else '`target` is not a list'}",
        )
    return known[name]


def _check_version(data: Any, file: str | None) -> None:
    """Reject a file of a newer version. This comes before the validation, which would report the
    new keys as unknown.
    """
    version = data.get("version") if isinstance(data, dict) else None
    major = major_version(version)
    if major is not None and major > READS_VERSION:
        raise ConfigError(
            Code.CONFIG_OF_NEWER_VERSION,
            (Problem("version", str(major), f"at most {READS_VERSION}, or no version"),),
            file,
        )


def _check_state(config: Config, folder: Path, file: str) -> None:
    """Raise an error if the appliance would start without the state of earlier runs: the file does
    not set `context.data`, the directory that is the default now does not exist, and the former
    default directory has state.
    """
    if "data" in config.context.model_fields_set or (folder / DATA).exists():
        return
    before = folder / _DATA_BEFORE
    if any((before / name).exists() for name in _STATE):
        expected = f"expected a value, because the state of earlier runs is in {before}"
        raise ConfigError(
            Code.STATE_AT_OLD_DEFAULT, (Problem("context.data", None, expected),), file
        )


def _overridden(data: Any, environ: Mapping[str, str], file: str) -> Any:
    """Replace values of the file by values of environment variables."""
    single = _with_single_joins(data, environ)
    if not single and not overriding(environ):
        return data
    schema = json_schema()
    try:
        _check_joins(single, schema)
        return override(data, environ, schema)
    except OverrideError as error:
        problem = Problem(error.name, None, error.expected)
    raise ConfigError(Code.CONFIG_INVALID, (problem,), file)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the configuration file."""
    schema = Config.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "olr-pg configuration",
        **{key: value for key, value in schema.items() if key != "title"},
    }


PREFIX: Final = "OLR_PG_"
_JOIN: Final = "__"
_NAME: Final = re.compile(rf"{PREFIX}[A-Z0-9]+(?:_[A-Z0-9]+)*(?:__[A-Z0-9]+(?:_[A-Z0-9]+)*)+")
_UNKNOWN: Final = "expected the name of a configuration key; `olr-pg config schema` prints all keys"

_Schema = dict[str, Any]


class OverrideError(ValueError):
    """Raised for a variable that cannot override a key. The error does not contain the variable's
    value, which may be a secret.
    """

    def __init__(self, name: str, expected: str) -> None:
        super().__init__(f"{name}: {expected}")
        self.name, self.expected = name, expected


def variable_of(key: str) -> str:
    """Return the name of the variable that overrides a key such as ``context.memory.max-mb``."""
    return PREFIX + key.replace(".", _JOIN).replace("-", "_").upper()


def overriding(environ: Iterable[str]) -> list[str]:
    """Return the names of the environment variables that override keys. A variable for a whole
    object comes before the variables for the object's keys.
    """
    return sorted(name for name in environ if name.startswith(PREFIX) and _JOIN in name)


def _with_single_joins(data: Any, environ: Iterable[str]) -> list[str]:
    """Return the names of variables that may be meant to override a key, but lack the ``__``. A
    variable to which the file refers has another purpose.
    """
    sections = tuple(f"{PREFIX}{section.upper()}_" for section in Config.model_fields)
    names = sorted(name for name in environ if name.startswith(sections) and _JOIN not in name)
    if not names:
        return []
    text = json.dumps(data, default=str)
    return [name for name in names if f"${{{name}}}" not in text]


def _check_joins(names: Iterable[str], schema: _Schema) -> None:
    """Reject variables whose names lack the ``__`` of a key's variable. Such variables would have
    no effect, and nobody would notice the mistake.

    Raises:
        OverrideError: there is such a variable.
    """
    for name in names:
        meant = _joined([schema], name.removeprefix(PREFIX).lower().split("_"), schema)
        if meant is not None:
            right = variable_of(".".join(meant))
            raise OverrideError(name, f"expected the name {right}, with __ between the parts")


def _joined(schemas: list[_Schema], words: list[str], whole: _Schema) -> list[str] | None:
    """Return the key that consists of these words, as its parts; None if there is none."""
    if not words:
        return []
    for count in range(1, len(words) + 1):
        part = "-".join(words[:count])
        below = list(_below(schemas, part, whole))
        rest = _joined(below, words[count:], whole) if below else None
        if rest is not None:
            return [part, *rest]
    return None


def override(data: Any, environ: Mapping[str, str], schema: _Schema) -> Any:
    """Return the configuration with the values of the environment variables; empty variables are
    ignored.

    Args:
        data: the value of the configuration file; it is not modified.
        schema: the JSON Schema of the configuration.

    Raises:
        OverrideError: a variable names no key, or a list item that the file does not have.
    """
    result = copy.deepcopy(data)
    for name in overriding(environ):
        # Read each variable by its name: `environ` records which variables are read, so that they
        # can be hidden from child processes.
        text = environ[name]
        if text:
            _set(result, name, text, schema)
    return result


def _set(data: Any, name: str, text: str, schema: _Schema) -> None:
    if not _NAME.fullmatch(name):
        raise OverrideError(name, _UNKNOWN)
    path = [part.lower().replace("_", "-") for part in name.removeprefix(PREFIX).split(_JOIN)]
    found = [schema]
    for part in path:
        found = list(_below(found, part, schema))
    if not found:
        raise OverrideError(name, _UNKNOWN)
    place = data
    for part in path[:-1]:
        at = _place(place, part, name)
        if isinstance(place, dict) and place.get(part) is None:
            place[part] = {}
        place = place[at]
    place[_place(place, path[-1], name)] = _value(text, found)


def _place(container: Any, part: str, name: str) -> Any:
    """Return what one part of an option's name stands for: a key of a JSON object, or a position in
    a list. Raise an error if the container has no such key or position.
    """
    if isinstance(container, dict) and not part.isdigit():
        return part
    if isinstance(container, list) and part.isdigit() and int(part) < len(container):
        return int(part)
    raise OverrideError(name, f"the file has no entry to which `{part}` can be added")


def _value(text: str, schemas: list[_Schema]) -> Any:
    types = {one for schema in schemas for one in _types(schema)}
    is_json = "string" not in types or (text[0] in "[{" and types & {"array", "object"})
    if is_json:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass  # the validation reports the error
    return text


def _types(schema: _Schema) -> list[str]:
    """Return the JSON types that a schema allows."""
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ["string" if isinstance(value, str) else "number" for value in values]
    found = schema.get("type", "string")
    return found if isinstance(found, list) else [found]


def _below(schemas: list[_Schema], part: str, whole: _Schema) -> Iterator[_Schema]:
    """Yield the schemas of the value with the key `part`; if `part` is a number, yield the schemas
    of a list's items.
    """
    for schema in schemas:
        for one in _alternatives(schema, whole):
            if part.isdigit() and "items" in one:
                yield from _alternatives(one["items"], whole)
            elif part in one.get("properties", {}):
                yield from _alternatives(one["properties"][part], whole)


def _alternatives(schema: _Schema, whole: _Schema) -> Iterator[_Schema]:
    """Yield the alternatives that a schema allows; resolve references."""
    if "$ref" in schema:
        yield from _alternatives(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
        return
    inner = [one for word in ("anyOf", "oneOf", "allOf") for one in schema.get(word, ())]
    if not inner:
        yield schema
    for one in inner:
        yield from _alternatives(one, whole)
