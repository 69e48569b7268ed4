"""Reading a configuration file.

The file is JSON, and may use what JSON5 adds: comments (``//`` and ``/* */``) and trailing commas.
A published format with a maintained parser was preferred to "$comment" keys, which cannot stand
inside a list or beside a single value, and to a comment stripper of our own; OLR's own plain JSON
is a subset of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import json5
from pydantic import ValidationError

from olr_pg.config.fields import LoadContext
from olr_pg.config.model import Config
from olr_pg.config.problems import Problem, describe_problems
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Mapping


class ConfigError(OlrPgError):
    """The configuration is not valid; `problems` holds everything that is wrong with it."""

    def __init__(self, code: int, problems: tuple[Problem, ...], file: str | None) -> None:
        self.problems = problems
        lines = [str(problem) for problem in problems]
        count = f"{len(lines)} problems" if len(lines) > 1 else lines[0]
        detail = "\n  ".join([count, *(lines if len(lines) > 1 else [])])
        super().__init__(code, detail, file=file)

    def __reduce__(self) -> tuple[object, ...]:
        return (ConfigError, (self.code, self.problems, self.where.get("file")))


def load_config(path: Path | str, environ: Mapping[str, str] | None = None) -> Config:
    """The configuration of the file at `path`, secrets resolved, paths absolute.

    Args:
        path: the file; relative paths in it start at its folder.
        environ: the environment for ``${ENV_NAME}``; the process's own by default.

    Raises:
        OlrPgError: 1001 the file cannot be read, 1002 it is not valid, 1003 a secret cannot be
            resolved.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise OlrPgError(1001, error.strerror or "it cannot be opened", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise OlrPgError(
            1001, "it is not UTF-8 text", file=str(path), offset=error.start
        ) from error
    folder = Path(os.path.abspath(path)).parent  # noqa: PTH100 - links stay as the user named them
    return parse_config(_parse(text, str(path)), folder, environ, file=str(path))


def parse_config(
    data: Any,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    *,
    file: str | None = None,
) -> Config:
    """The configuration of a JSON value, for callers that do not have it in a file.

    Raises:
        ConfigError: 1002 it is not valid, 1003 a secret cannot be resolved.
    """
    context = LoadContext(folder, os.environ if environ is None else environ)
    try:
        return Config.model_validate(data, context=context)
    except ValidationError as error:
        problems = describe_problems(error.errors(include_url=False), data)
    # Outside the handler: a chained ValidationError would carry the input, secrets included.
    code = 1003 if all(problem.secret for problem in problems) else 1002
    raise ConfigError(code, problems, file)


def one_target(config: Config, name: str | None) -> Config:
    """The configuration of one target by itself.

    Args:
        name: of the target; None: of the only one.

    Raises:
        OlrPgError: 1105 there are several, 1106 none has that name.
    """
    known = {part.name: part for part in config.targets}
    names = ", ".join(filter(None, known))
    if name is None:
        if len(known) > 1:
            raise OlrPgError(1105, f"they are {names}")
        return next(iter(known.values()))
    if not name or name not in known:
        raise OlrPgError(1106, f"{name!r}; there are: {names or 'none with a name'}")
    return known[name]


def _parse(text: str, file: str) -> Any:
    try:
        return json5.loads(text, allow_duplicate_keys=False)
    except ValueError as error:
        reason = str(error).removeprefix("<string>:")
        place = f"line {reason}" if reason != str(error) else reason
    except RecursionError:
        place = "the objects are nested too deeply"
    expected = f"expected JSON (comments and trailing commas allowed): {place}"
    raise ConfigError(1002, (Problem("", None, expected),), file)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    schema = Config.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "olr-pg configuration",
        **{key: value for key, value in schema.items() if key != "title"},
    }
