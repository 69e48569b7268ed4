"""Makes a release: what is published, and folders of wheels for machines without a network.

    uv run python tools/release.py build --out dist
    uv run python tools/release.py wheels --out wheels [--machine aarch64] [--python 3.12]
    uv run python tools/release.py check

`build` writes the wheel, the sources, the versions that the tests ran with (as pip's constraints),
the list of all parts (CycloneDX) and the checksums of these. The same commit gives the same files.
`wheels` collects olr_pg and all that it needs, Java and PostgreSQL among it, into one folder, from
which pip installs without a network (docs/air-gapped.md). `check` tells what is not ready.

The version is the one of pyproject.toml, nowhere else: `uv version --bump minor` sets it.
Publishing is not done here (CONTRIBUTING.md, "Cut a release").
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SUMS: Final = "SHA256SUMS"

_SOURCES_ONLY: Final = ("pyspark",)
"""What is published as sources alone; it is pure Python, and its wheel is made here."""

_GLIBC: Final = (17, 24, 26, 27, 28, 31, 34)
"""Minor versions of glibc that wheels of our dependencies name; pip takes exactly what is named."""

_EXPORT: Final = ("export", "--locked", "--no-dev", "--quiet")


URLS: Final = ("Homepage", "Source", "Issues", "Changelog")
"""What a release's page links to."""


class NotReadyError(Exception):
    """A release cannot be made; the message says why, and what to do."""


def version() -> str:
    """Return the version of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return str(project["project"]["version"])


def unready(changelog: str, number: str) -> list[str]:
    """Tell what keeps the changelog from being that of a release of this version."""
    found = re.search(rf"^## \[{re.escape(number)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)
    if not found:
        wanted = f"## [{number}] - YYYY-MM-DD"
        return [f"CHANGELOG.md has no section {wanted!r}: move the unreleased changes into one"]
    body = re.split(r"^## ", changelog[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    return [] if body.strip() else [f"the section of {number} in CHANGELOG.md is empty"]


def unplaced(project: str) -> list[str]:
    """Tell which places, known to the owner alone, a pyproject.toml does not name.

    Args:
        project: the text of the file.
    """
    urls = tomllib.loads(project)["project"].get("urls", {})
    missing = [name for name in URLS if not str(urls.get(name, "")).startswith("https://")]
    if not missing:
        return []
    return [f"pyproject.toml lacks {', '.join(missing)} in [project.urls]: its owner fills them in"]


def check() -> list[str]:
    """Tell what keeps the checkout from being released."""
    number = version()
    found = unready((ROOT / "CHANGELOG.md").read_text(), number)
    found += unplaced((ROOT / "pyproject.toml").read_text())
    if _run("git", "status", "--porcelain"):
        found.append("the checkout has changes: commit them")
    if f"v{number}" not in _run("git", "tag", "--points-at", "HEAD").split():
        found.append(f"the commit has no tag: git tag -a v{number} -m 'olr_pg {number}'")
    return found


def build(out: Path) -> list[Path]:
    """Write the files of a release into an empty folder, and return them.

    Raises:
        NotReadyError: the folder has files.
    """
    _make_empty(out)
    stamp = _run("git", "log", "-1", "--format=%ct").strip()
    _uv("build", "--quiet", "--out-dir", str(out), SOURCE_DATE_EPOCH=stamp)
    (out / ".gitignore").unlink(missing_ok=True)
    name = f"olr_pg-{version()}"
    (out / f"{name}-constraints.txt").write_text(_constraints())
    parts = _uv(*_EXPORT, "--format", "cyclonedx1.5")
    # Without the time and the number of this very build.
    kept = [line for line in parts.splitlines(keepends=True) if not _OF_BUILD.search(line)]
    (out / f"{name}-sbom.cdx.json").write_text("".join(kept))
    files = sorted(path for path in out.iterdir() if path.is_file())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (out / SUMS).write_text("".join(sums))
    return [*files, out / SUMS]


_OF_BUILD: Final = re.compile(r'^\s*"(?:serialNumber|timestamp)":')


def collect_wheels(out: Path, machine: str, python: str) -> None:
    """Put the wheels of olr_pg and of all that it needs into an empty folder.

    Args:
        machine: as `uname -m` prints it there.
        python: the version there, such as "3.12".

    Raises:
        NotReadyError: the folder has files.
    """
    _make_empty(out)
    with tempfile.TemporaryDirectory() as made:
        wanted = Path(made) / "wanted.txt"
        lines = [line for line in _constraints().splitlines() if line and line[0] != "#"]
        is_source = {line: line.split("==")[0] in _SOURCES_ONLY for line in lines}
        wanted.write_text("\n".join(line for line in lines if not is_source[line]))
        platforms = [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC]
        platforms += [f"manylinux2014_{machine}", f"linux_{machine}"]
        _pip(
            "download", "--no-deps", "--only-binary=:all:", "--python-version", python, "--dest",
            str(out), "--requirement", str(wanted), *(f"--platform={one}" for one in platforms),
        )  # fmt: skip
        sources = [line for line in lines if is_source[line]]
        _pip("wheel", "--no-deps", "--wheel-dir", str(out), *sources)
        _uv("build", "--quiet", "--wheel", "--out-dir", made)
        for wheel in Path(made).glob("*.whl"):
            (out / wheel.name).write_bytes(wheel.read_bytes())


def _constraints() -> str:
    return _uv(*_EXPORT, "--no-emit-project", "--no-hashes", "--no-annotate", "--no-header")


def _make_empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise NotReadyError(f"{folder} has files: name an empty folder")


def _run(*command: str, **environment: str) -> str:
    """Run a command in the checkout; return what it prints. What fails says why on stderr."""
    done = subprocess.run(  # noqa: S603 - commands of this file
        command, cwd=ROOT, check=True, stdout=subprocess.PIPE, env=os.environ | environment
    )
    return done.stdout.decode()


def uv_command() -> tuple[str, ...]:
    """Return how uv is called: as the one that runs this, from the PATH, or as a module."""
    found = os.environ.get("UV") or shutil.which("uv")
    return (found,) if found else (str(Path(sys.base_prefix) / "bin" / "python3"), "-m", "uv")


def _uv(*arguments: str, **environment: str) -> str:
    return _run(*uv_command(), *arguments, **environment)


def _pip(*arguments: str) -> None:
    # uv's environments have no pip of their own.
    _uv("run", "--quiet", "--no-project", "--with", "pip", "python", "-m", "pip", *arguments, "-q")


def main(arguments: list[str]) -> int:
    """Run one of the commands; return the exit code."""
    parser = argparse.ArgumentParser(description="Make a release of olr_pg.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="tell what is not ready for a release")
    building = commands.add_parser("build", help="make what is published")
    building.add_argument("--out", type=Path, required=True, help="an empty folder")
    wheels = commands.add_parser("wheels", help="collect all wheels for a machine without network")
    wheels.add_argument("--out", type=Path, required=True, help="an empty folder")
    wheels.add_argument("--machine", default=os.uname().machine, help="x86_64 or aarch64")
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    wheels.add_argument("--python", default=own, help=f"version of Python there; {own} by default")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "check":
            found = check()
            print("\n".join(found) or f"{version()} can be released")  # noqa: T201
            return 1 if found else 0
        if chosen.command == "build":
            print("\n".join(str(path) for path in build(chosen.out)))  # noqa: T201
        else:
            collect_wheels(chosen.out, chosen.machine, chosen.python)
    except NotReadyError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(error.cmd)}: exit code {error.returncode}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
