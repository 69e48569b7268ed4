"""The two kinds of sources."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from olr_pg.config.source_section import SOURCE_KIND, OfflineSource, OracleSource, Source

SOURCE: TypeAdapter[OracleSource | OfflineSource] = TypeAdapter(Source)
LIVE = {"user": "olr", "password": "p", "server": "db:1521/orcl"}


def test_a_source_without_a_kind_is_a_live_one() -> None:
    source = SOURCE.validate_python(LIVE)
    assert isinstance(source, OracleSource)
    assert (source.kind, source.fetch_lobs, source.vault) == ("oracle", "never", None)


def test_a_kind_that_is_none_is_an_error_of_its_own() -> None:
    with pytest.raises(ValidationError) as caught:
        SOURCE.validate_python({**LIVE, "kind": "ofline"})
    assert caught.value.errors()[0]["type"] == SOURCE_KIND


def test_keys_of_the_other_kind_are_not_taken() -> None:
    with pytest.raises(ValidationError):
        SOURCE.validate_python({**LIVE, "logs": "/a"})


@pytest.mark.parametrize("redo", ["archived", "online"])
@pytest.mark.parametrize("with_ranges", [True, False])
def test_a_command_reads_ranges_of_online_logs_with_a_command_of_their_own(
    redo: str, with_ranges: bool
) -> None:
    transport = {"kind": "command", "command": ["cat", "{name}"]}
    if with_ranges:
        transport["range-command"] = ["dd", "if={name}"]
    section = {**LIVE, "redo": redo, "vault": {"directory": "/v"}, "transport": transport}
    if with_ranges == (redo == "online"):
        source = SOURCE.validate_python(section)
        assert isinstance(source, OracleSource)
        assert source.redo == redo
        return
    with pytest.raises(ValidationError, match="range-command"):
        SOURCE.validate_python(section)


@pytest.mark.parametrize("kind", [{"kind": "bfile"}, {"kind": "sftp", "host": "h", "user": "u"}])
def test_online_logs_are_read_over_a_transport_too(kind: dict[str, str]) -> None:
    vault = {"directory": "/v"}
    source = SOURCE.validate_python({**LIVE, "redo": "online", "vault": vault, "transport": kind})
    assert isinstance(source, OracleSource)
    assert (source.redo, source.transport is not None) == ("online", True)


@pytest.mark.parametrize("mode", ["SYSDG", "SYSBACKUP", "SYSDBA", "SYSOPER", None])
def test_a_standby_is_read_with_an_administrative_privilege(mode: str | None) -> None:
    standby = {"server": "h:1521/S", "user": "u", "password": "p"} | (
        {"mode": mode} if mode else {}
    )
    if mode == "SYSOPER":
        with pytest.raises(ValidationError):
            SOURCE.validate_python({**LIVE, "standby": standby})
        return
    source = SOURCE.validate_python({**LIVE, "standby": standby})
    assert isinstance(source, OracleSource)
    assert source.standby is not None
    assert source.standby.mode == (mode or "SYSDG")


def test_a_mounted_database_has_no_bfiles() -> None:
    standby = {"server": "h:1521/S", "user": "u", "password": "p"}
    section = {**LIVE, "standby": standby, "vault": {"directory": "/v"}}
    sftp = {"kind": "sftp", "host": "h", "user": "u"}
    SOURCE.validate_python({**section, "transport": sftp})
    with pytest.raises(ValidationError, match='"bfile" needs an open database'):
        SOURCE.validate_python({**section, "transport": {"kind": "bfile"}})


def test_true_character_sets_are_known_and_have_the_blank_of_ascii() -> None:
    sets = {"CRM.*": "cl8mswin1251", "*": "AL32UTF8"}
    source = SOURCE.validate_python({**LIVE, "character-sets": sets})
    assert source.character_sets == sets
    for name in ("WE8MSWIN1525", "WE8EBCDIC500", "AL16UTF16", ""):
        with pytest.raises(ValidationError, match=r"such as WE8MSWIN1252.* for 'A\.\*'"):
            SOURCE.validate_python({**LIVE, "character-sets": {"A.*": name}})
