"""Values of the configuration file, one type after the other.

Secret references: environment, files, and that a failure shows no secret.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from olr_pg.config.fields import (
    ListedTable,
    Section,
    SparkMaster,
    Timezone,
    UnresolvedSecretError,
    expand_environment,
    is_secret_property,
    major_version,
    read_secret_file,
    resolve_secret,
)


def accepts(kind: Any, value: object) -> bool:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("value", "major"),
    [(1, 1), ("1.2", 1), ("v3.2.3", 3), ("1.3.0-beta", 1), ("x", None), (True, None), (None, None)],
)
def test_versions(value: object, major: int | None) -> None:
    assert major_version(value) == major


@pytest.mark.parametrize("zone", ["+02:00", "Europe/Berlin", "-11:30"])
def test_zones(zone: str) -> None:
    assert accepts(Timezone, zone)
    assert not accepts(Timezone, "Europe/Nowhere")


def test_masters() -> None:
    assert all(accepts(SparkMaster, one) for one in ("local", "local[2,3]", "spark://h:7077"))
    assert not any(accepts(SparkMaster, one) for one in ("locale", "local[", "mesos"))


def test_properties_with_secrets() -> None:
    assert is_secret_property("spark.hadoop.fs.s3a.secret.key")
    assert not is_secret_property("spark.driver.memory")


def test_a_percent_sign_in_the_name_of_a_table_is_quoted() -> None:
    assert accepts(ListedTable, '"SHOP"."ORD%X"')
    assert not accepts(ListedTable, "SHOP.%")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${PW}", "p$w"),
        ("postgresql://u:${PW}@h/${DB}", "postgresql://u:p$w@h/app"),
        ("$${PW}", "${PW}"),
        ("$PW and $", "$PW and $"),
        ("${NESTED}", "${PW}"),
    ],
)
def test_references_to_the_environment(text: str, expected: str) -> None:
    environ = {"PW": "p$w", "DB": "app", "NESTED": "${PW}"}
    assert expected == expand_environment(text, environ)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${PW}", "variable PW is not set"),
        ("${EMPTY}", "variable EMPTY is empty"),
        ("${}", "without a valid variable name"),
        ("hunter2${no name}", "without a valid variable name"),
    ],
)
def test_a_reference_that_leads_nowhere(text: str, reason: str) -> None:
    with pytest.raises(UnresolvedSecretError, match=reason) as caught:
        expand_environment(text, {"EMPTY": ""})
    assert "hunter2" not in str(caught.value)


@given(st.text().filter(bool))
def test_a_secret_may_hold_any_text(secret: str) -> None:
    assert f"<{secret}>" == expand_environment("<${PW}>", {"PW": secret})


@pytest.mark.parametrize("form", ["file:secret", "file:./secret", "file:${NAME}"])
def test_a_file_reference_starts_at_the_folder(tmp_path: Path, form: str) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    assert resolve_secret(form, tmp_path, {"NAME": "secret"}) == "hunter2"


@pytest.mark.parametrize("form", ["file:{}", "file://{}"])
def test_a_file_reference_may_be_absolute(tmp_path: Path, form: str) -> None:
    path = tmp_path / "secret"
    path.write_text("hunter2")
    assert resolve_secret(form.format(path), Path("/elsewhere"), {}) == "hunter2"


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        (b"a\n", "a"),
        (b"a\r\n", "a"),
        (b"a\n\n", "a\n"),
        (b" a ", " a "),
        ("ü".encode(), "ü"),
        (b"\xef\xbb\xbfa\r\n", "a"),
    ],
)
def test_one_line_break_at_the_end_is_not_the_secret(
    tmp_path: Path, content: bytes, secret: str
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    assert secret == read_secret_file(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"hunter2\xff", "not UTF-8"),
        (b"hunter2" * 10_000, "longer than"),
    ],
)
def test_a_file_that_holds_no_secret(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    with pytest.raises(UnresolvedSecretError, match=reason) as caught:
        read_secret_file(path)
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnresolvedSecretError, match="cannot be read"):
        read_secret_file(tmp_path / name)


class _Example(Section):
    poll_ms: int = Field(default=1)


def test_keys_have_dashes_and_no_others_are_known() -> None:
    assert _Example.model_validate({"poll-ms": 5}).poll_ms == 5
    for wrong in ({"poll_ms": 5}, {"poll-ms": 5, "other": 1}):
        with pytest.raises(ValidationError):
            _Example.model_validate(wrong)


def test_types_are_not_guessed_and_values_stay() -> None:
    with pytest.raises(ValidationError):
        _Example.model_validate({"poll-ms": "5"})
    with pytest.raises(ValidationError):
        setattr(_Example(), "poll_ms", 2)  # noqa: B010 - mypy would refuse the plain form


def test_errors_do_not_show_what_is_in_the_file() -> None:
    with pytest.raises(ValidationError) as caught:
        _Example.model_validate({"poll-ms": "s3cret"})
    assert "s3cret" not in str(caught.value)
