"""Reads a configuration file.

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
"""

from __future__ import annotations

import copy
import json
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from olr_pg.config.fields import READS_VERSION, LoadContext, major_version
from olr_pg.config.model import DATA, Config
from olr_pg.config.syntax import SyntaxProblem, parse, read_text
from olr_pg.config.validation_problems import Problem, describe_problems
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
    return _overridden(_parse(read_text(path), str(path)), environ, str(path))


def parse_text(
    text: str, folder: Path, environ: Mapping[str, str] | None = None, *, file: str
) -> Config:
    """Parse the text of a configuration file that will be written to `file` in `folder`.

    Variables that override keys are ignored.

    Raises:
        ConfigError: 1002, 1003, 1121, as `parse_config`.
    """
    return parse_config(_parse(text, file), folder, environ, file=file)


def parse_config(
    data: Any,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    *,
    file: str | None = None,
) -> Config:
    """Validate a configuration that is given as a JSON value, and resolve its secrets.

    Raises:
        ConfigError: 1002 it is invalid, 1003 a secret cannot be resolved, 1121 a newer version of
            olr_pg is needed for it.
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


def _parse(text: str, file: str) -> Any:
    try:
        return parse(text, file)
    except SyntaxProblem as error:
        problem = Problem("", None, str(error))
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
    """Raised for a variable that cannot override a key. It does not contain the variable's value,
    which may be a secret.
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
    """Reject variables whose names lack the ``__`` of a key's variable. They would have no effect,
    and nobody would notice it.

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
