"""What is published: made twice the same, complete, and it works outside of a checkout."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import release

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    release.build(folder)
    return folder


def wheel_of(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.parametrize(
    ("changelog", "ready"),
    [
        ("## [Unreleased]\n\n- new\n", False),
        ("## [1.2.0]\n\n- without its date\n", False),
        ("## [1.2.0] - 2026-01-31\n\n## [1.1.0] - 2026-01-01\n\n- old\n", False),
        ("## [1.2.01] - 2026-01-31\n\n- another\n", False),
        ("## [Unreleased]\n\n## [1.2.0] - 2026-01-31\n\n- new\n", True),
    ],
)
def test_a_version_needs_its_section(changelog: str, ready: bool) -> None:
    assert (release.unready(changelog, "1.2.0") == []) is ready


NAMED = "\n".join(f'{name} = "https://example.org/{name}"' for name in release.URLS)


@pytest.mark.parametrize(
    ("urls", "missing"),
    [
        ("", release.URLS),
        ("[project.urls]", release.URLS),
        ('[project.urls]\nHomepage = "https://example.org"\nSource = ""', release.URLS[1:]),
        (f"[project.urls]\n{NAMED}", ()),
    ],
)
def test_the_owner_is_asked_for_the_places(urls: str, missing: tuple[str, ...]) -> None:
    told = release.unplaced(f'[project]\nname = "olr_pg"\n{urls}\n')
    assert [", ".join(missing) in one for one in told] == [True] * bool(missing)


def test_every_file_has_its_checksum(published: Path) -> None:
    lines = (published / release.SUMS).read_text().splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    files = {path.name for path in published.iterdir()} - {release.SUMS}
    assert set(sums) == files
    for name, expected in sums.items():
        assert hashlib.sha256((published / name).read_bytes()).hexdigest() == expected


def test_the_same_commit_gives_the_same_files(published: Path, tmp_path: Path) -> None:
    release.build(tmp_path / "again")
    assert (tmp_path / "again" / release.SUMS).read_text() == (published / release.SUMS).read_text()


def test_a_folder_with_files_is_left_alone(published: Path) -> None:
    before = sorted(published.iterdir())
    assert release.main(["build", "--out", str(published)]) == 1
    assert sorted(published.iterdir()) == before


def test_the_wheel_has_what_the_program_and_the_pages_name(published: Path) -> None:
    with zipfile.ZipFile(wheel_of(published)) as wheel:
        names = set(wheel.namelist())
    inside = {
        str(path.relative_to(ROOT)) for path in (ROOT / "olr_pg").rglob("*") if path.is_file()
    }
    compiled = {name for name in inside if "__pycache__" in name}
    assert inside - compiled <= names
    (data,) = {name.partition(".data/")[0] for name in names if ".data/" in name}
    for folder in ("sql", "configs"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file():
                assert f"{data}.data/data/share/olr-pg/{path.relative_to(ROOT)}" in names


def test_the_list_of_parts_names_every_locked_one(published: Path) -> None:
    (listed,) = published.glob("*.cdx.json")
    parts = json.loads(listed.read_text())["components"]
    (constraints,) = published.glob("*-constraints.txt")
    locked = {line.partition("==")[0] for line in constraints.read_text().splitlines()}
    assert {"pyspark", "psycopg", "oracledb", "numba"} <= locked
    assert locked <= {part["name"] for part in parts}


def done(*command: str | Path, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    # Children of other tests in this process are told where the checkout is; these are not.
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=250,
        check=False, env={**own, **environ},
    )  # fmt: skip


def run(*command: str | Path, folder: Path, **environ: str) -> str:
    found = done(*command, folder=folder, **environ)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def kernels_of(program: Path) -> set[str]:
    """Names of the compiled kernels beside the installed package."""
    return {str(path) for path in program.parents[1].rglob("*.nb[ci]")}


@pytest.fixture(scope="module")
def program(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's command in an environment that has nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    uv = release.uv_command()
    run(*uv, "venv", "--quiet", "--python", sys.executable, folder / "environment", folder=folder)
    (constraints,) = published.glob("*-constraints.txt")
    install: tuple[str | Path, ...] = (
        *uv, "pip", "install", "--quiet", "--python", folder / "environment" / "bin" / "python",
        "--constraint", constraints, wheel_of(published),
    )  # fmt: skip
    # What another installation has fetched is enough: to ask the index again takes 20 seconds.
    if done(*install, "--offline", folder=folder).returncode != 0:
        run(*install, folder=folder)
    return folder / "environment" / "bin" / "olr-pg"


def test_the_installed_wheel_takes_a_pack_of_kernels_and_shows_the_demo(
    program: Path, tmp_path: Path
) -> None:
    pack = tmp_path / "kernels.pack"
    checkout = Path(sys.executable).with_name("olr-pg")
    run(checkout, "prepare", "--no-java", "--export", pack, folder=tmp_path)
    before = kernels_of(program)
    run(program, "prepare", "--no-java", "--import", pack, folder=tmp_path)
    imported = kernels_of(program) - before
    assert imported
    try:
        assert "identical" in run(program, "demo", folder=tmp_path, TMPDIR=str(tmp_path))
    finally:
        run(program, "demo", "--clean", folder=tmp_path, TMPDIR=str(tmp_path))
    assert kernels_of(program) - before == imported, "the demo compiled kernels that no pack had"


def test_the_installed_wheel_works_outside_of_a_checkout(program: Path, tmp_path: Path) -> None:
    """Behind the pack of kernels: what it simulates here would be compiled a second time."""
    environment = program.parents[1]
    assert run(program, "--version", folder=tmp_path) == f"olr-pg {release.version()}\n"
    files = Path(json.loads(run(program, "version", "--json", folder=tmp_path))["files"])
    assert files == environment / "share" / "olr-pg"
    assert (files / "sql" / "oracle" / "grants.sql").is_file()
    page = environment / "share" / "man" / "man1" / "olr-pg.1"
    assert page.read_bytes() == (ROOT / "man" / "olr-pg.1").read_bytes()
    out = tmp_path / "simulated"
    run(program, "simulate", "--seed", "1", "--size", "100KB", "--out", out, folder=tmp_path)
    assert (out / "dictionary.json").is_file()
