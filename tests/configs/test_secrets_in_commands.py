"""No example, page or script passes a secret as an argument: all users of a host can see the
arguments of a program, and shells write them to a file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = "docker", "configs", "docs", "sql", "man", "tools", ".github", ".ci"
PAGES: Final = "README.md", "CONTRIBUTING.md", "SECURITY.md"
SUFFIXES: Final = frozenset({
    "", ".md", ".sh", ".sql", ".txt", ".yaml", ".yml", ".json5", ".json", ".1", ".service", ".py",
})  # fmt: skip

SECRET: Final = (
    r"""(?:\$\{?\w*(?:PASSWORD|TOKEN|SECRET)\w*|["']a password["']|PASSWORD\b|TOKEN\b)"""
)
PROGRAM: Final = (
    r"(?:sqlplus|sqlcl|createAppUser|psql|pg_dump|curl|wget|kubectl|docker run|docker exec|openssl"
    r"|olr-pg(?=\s)|oc|helm|rman|expdp|impdp|mkstore|orapwd|htpasswd|sshpass|su -c)"
)
PASSES: Final = (
    re.compile(rf"\b{PROGRAM}\b[^|;#<]*?{SECRET}(?!_FILE)(?!=\$\()"),
    re.compile(r"\b--?(?:password|token|secret)[= ][^-\s|`)\]]"),
    re.compile(r"--from-literal=\w*(?:PASSWORD|TOKEN|SECRET)"),
    re.compile(rf"{PROGRAM}\b[^|`]*://[\w${{}}]+:[^@/\s]+@"),
    re.compile(r"Authorization: Bearer (?:\$|<)"),
    re.compile(r"\s(?:-e|--env|--build-arg) \w*(?:PASSWORD|TOKEN|SECRET)\w*="),
)
"""Commands that contain a secret, or a variable that the shell replaces by one."""


def files() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES and "__pycache__" not in path.parts:
                yield path
    yield from (ROOT / page for page in PAGES)


def commands(path: Path) -> Iterator[str]:
    """The lines of a file, with continued lines joined, and without other names for the same."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return
    yield from re.sub(r"\\\n[ \t#-]*", " ", text).splitlines()


def passed(line: str) -> bool:
    return any(form.search(line) for form in PASSES)


@pytest.mark.parametrize(
    "line",
    [
        'createAppUser SHOP "$SHOP_PASSWORD" "$ORACLE_PDB"',
        '--   sqlplus / as sysdba @user.sql OLR "a password"',
        'curl -X POST -H "Authorization: Bearer $ALICE_TOKEN" -d 1 https://h/',
        "kubectl create secret generic x --from-literal=ORACLE_PASSWORD=…",
        "psql postgresql://olr:${PG_PASSWORD}@host/app",
        "docker run -e PG_PASSWORD=x olr-pg",
        "docker build --build-arg PIP_TOKEN=x .",
    ],
)
def test_commands_with_a_secret_are_found(line: str) -> None:
    assert passed(line)


def test_nothing_passes_a_secret_as_an_argument() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in files()
        for line in commands(path)
        if passed(line)
    ]
    assert found == []
    assert len(list(files())) > 50
