"""Resolves references to secrets: ``${ENV_NAME}`` inside a text, and ``file:PATH`` or ``{"file":
PATH}`` as a whole value.

The value of a reference is not searched for further references, so a secret can contain any
character. To write a literal ``${``, write ``$${``. A single line break at the end of a secret file
is not part of the secret.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from olr_pg.errors import system_reason

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
