"""What others on this machine or the network can change or read is refused or reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from olr_pg.appliance.exposure_checks import (
    check_code_places,
    check_files,
    check_search_path,
    check_source_peer,
    check_target_peer,
)
from olr_pg.applier.target.connection import connect
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import OracleSource
from olr_pg.errors import Code, OlrPgError
from tests.cli.conftest import ENTRY
from tests.server.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator

DESCRIPTOR = (
    "(DESCRIPTION=(ADDRESS=(PROTOCOL={})(HOST=db)(PORT=1))(CONNECT_DATA=(SERVICE_NAME=s)){})"
)
CHANGEABLE = "other users can change"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that all users can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="olr-pg-exposed-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def refused(places: dict[str, str]) -> str:
    with pytest.raises(OlrPgError) as caught:
        check_code_places(places)
    assert caught.value.code == Code.CODE_OF_OTHERS
    return str(caught.value.where["directory"])


@contextmanager
def owned_by_another(path: Path) -> Iterator[None]:
    os.chown(path, 12345, -1)
    yield
    os.chown(path, os.geteuid(), -1)


def test_code_is_loaded_from_no_directory_of_others(open_folder: Path) -> None:
    cache = open_folder / "cache"
    kernels = cache / "kernels_0123"
    kernels.mkdir(parents=True)
    named = {"NUMBA_CACHE_DIR": str(cache)}
    check_code_places(named)
    check_code_places({"NUMBA_CACHE_DIR": str(cache / "none yet")})
    for place in (cache, kernels):
        place.chmod(0o777)
        assert refused(named) == str(place)
        place.chmod(0o775)  # to the user's own group, which many systems have
        check_code_places(named)
    for mode in (0o777, 0o1777):  # as a volume, and as /tmp
        open_folder.chmod(mode)
        check_code_places(named)
    open_folder.chmod(0o700)
    cache.chmod(0o777)  # nobody else gets there
    check_code_places(named)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_nor_of_a_stranger_who_was_first(open_folder: Path) -> None:
    cache = open_folder / "cache"
    cache.mkdir()
    with owned_by_another(cache):
        assert refused({"NUMBA_CACHE_DIR": str(cache)}) == str(cache)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_directory_that_an_administrator_gave_to_its_owner_is_used() -> None:
    """As that of the image, also by root or by a command in the container of another user."""
    with tempfile.TemporaryDirectory(prefix="olr-pg-exposed-", dir="/var/cache") as name:
        cache = Path(name)
        cache.chmod(0o755)
        with owned_by_another(cache):
            check_code_places({"NUMBA_CACHE_DIR": name})
            cache.chmod(0o777)
            assert refused({"NUMBA_CACHE_DIR": name}) == name


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("inner", [".", "numba", "numba/more"])
def test_directories_that_this_user_cannot_read_end_no_command(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, inner: str
) -> None:
    """sudo can leave HOME as it was, and the directory of a service is its own."""
    private = open_folder / "private"
    (private / inner).mkdir(parents=True, mode=0o700)
    private.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(private / inner))
    os.seteuid(65534)
    try:
        check_code_places({"NUMBA_CACHE_DIR": str(private / inner)})
    finally:
        os.seteuid(0)


def test_javas_files_are_code(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(open_folder))
    home = open_folder / "olr_pg" / "java-0123"
    home.mkdir(parents=True)
    check_code_places({})
    home.chmod(0o777)
    assert refused({}) == str(home)


def test_a_command_ends_before_it_loads_a_kernel_from_there(open_folder: Path) -> None:
    """Numba's files are pickles, so to load one is to run it."""
    cache = open_folder / "cache"
    environ = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", ENTRY, "version"]
    subprocess.run(command, env=environ, check=True, capture_output=True)
    cache.mkdir()
    cache.chmod(0o777)
    done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "OLR-01223" in done.stderr


# --- the configuration and its secrets ---


def written(folder: Path, **apply: Any) -> Path:
    path = folder / "olr-pg.json"
    source = {"kind": "offline", "dictionary": "d.json", "logs": "logs"}
    document = {"source": source, "apply": {"tables": ["A.B"], **apply}}
    path.write_text(json.dumps(document))
    path.chmod(0o644)
    return path


def findings(path: Path, **environ: str) -> list[str]:
    return [one.what for one in check_files(load_config(path, environ))]


def test_a_configuration_that_others_can_change(open_folder: Path) -> None:
    path = written(open_folder, **{"connect-string": "embedded"})
    assert findings(path) == []
    path.chmod(0o666)
    (found,) = findings(path)
    assert CHANGEABLE in found
    path.chmod(0o644)
    if os.geteuid() == 0:
        with owned_by_another(path):
            (found,) = findings(path)
        assert CHANGEABLE in found


@pytest.mark.parametrize(
    ("connect_string", "is_secret"),
    [
        ("host=h dbname=d password=hunter2", True),
        ("host=h dbname=d password=hunter=2", True),
        ("postgresql://u:hunter2@h/d", True),
        ("host=h dbname=d password=${PG}", False),
        ("host=h dbname=d", False),
        ("embedded", False),
    ],
)
def test_a_configuration_with_a_password_that_all_can_read(
    open_folder: Path, connect_string: str, is_secret: bool
) -> None:
    path = written(open_folder, **{"connect-string": connect_string})
    found = findings(path, PG="hunter2")
    assert ["contains a secret" in one for one in found] == [True] * is_secret
    assert "hunter" not in "".join(found)
    path.chmod(0o640)
    assert findings(path, PG="hunter2") == []


def test_a_secret_file_that_all_can_read(open_folder: Path) -> None:
    file = open_folder / "password"
    file.write_text("host=h dbname=d password=hunter2")
    for reference in ({"file": "password"}, "file:password", f"file:{file}"):
        path = written(open_folder, **{"connect-string": reference})
        file.chmod(0o644)
        (found,) = findings(path)
        assert str(file) in found
        file.chmod(0o600)
        assert findings(path) == []


def test_a_private_key_that_all_can_read(open_folder: Path) -> None:
    pair = Authority(open_folder).issue("server")
    path = written(open_folder, **{"connect-string": "embedded"})
    document = json.loads(path.read_text())
    tls = {"certificate": str(pair.certificate), "key": str(pair.key)}
    document |= {"target": {"address": ":0", "tls": tls}, "status": {"address": ":0", "tls": tls}}
    path.write_text(json.dumps(document))
    pair.key.chmod(0o644)
    (found,) = findings(path)
    assert str(pair.key) in found
    pair.key.chmod(0o600)
    assert findings(path) == []


# --- the other ends of connections ---


def test_a_target_that_nobody_has_verified(postgres: str) -> None:
    """The name decides; the address is that of the cluster of the tests."""
    for host in ("127.0.0.1", "localhost"):
        with connect(make_conninfo(postgres, host=host), replica=None) as connection:
            assert list(check_target_peer(connection)) == []
    far = make_conninfo(postgres, host="db.example", hostaddr="127.0.0.1")
    with connect(far, replica=None) as connection:
        (found,) = check_target_peer(connection)
    assert found.what == "the connection to db.example is not encrypted"
    assert "sslmode=verify-full" in found.mend[0]


PATH: Final = """CREATE SCHEMA "it's"; GRANT CREATE ON SCHEMA "it's" TO PUBLIC;
    CREATE SCHEMA beside; GRANT CREATE ON SCHEMA beside TO PUBLIC"""


def test_a_search_path_in_which_everybody_can_create_functions(postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as connection:
        connection.execute(PATH.encode())
    with connect(postgres_database, replica=None) as connection:
        assert list(check_search_path(connection)) == []
        connection.execute("""SET search_path = "it's", public""")
        (found,) = check_search_path(connection)
        assert found.mend == ("""REVOKE CREATE ON SCHEMA "it's" FROM PUBLIC;""",)
        connection.execute(found.mend[0].encode())
        assert list(check_search_path(connection)) == []


@pytest.mark.parametrize(
    ("server", "what"),
    [
        ("127.0.0.1:1521/s", None),
        ("tcps://db:2484/s", None),
        ("db:1521/s", "not encrypted"),
        (DESCRIPTOR.format("tcp", ""), "not encrypted"),
        (DESCRIPTOR.format("tcps", ""), None),
        (
            DESCRIPTOR.format("tcps", "(SECURITY=(SSL_SERVER_DN_MATCH=OFF))"),
            "the name in the certificate of db is not checked",
        ),
        ("a name of tnsnames.ora", "it is unknown whether"),
    ],
)
def test_a_source_that_nobody_has_verified(server: str, what: str | None) -> None:
    found = list(check_source_peer(OracleSource(user="u", password="p", server=server)))  # type: ignore[arg-type]
    assert [one.what for one in found if what is None or what not in one.what] == []
    assert len(found) == (what is not None)
