"""Laws: any file gives a configuration or a coded error, and no error ever shows a secret."""

from __future__ import annotations

import copy
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.config.reading import ConfigError, load_config, parse_config
from olr_pg.errors import OlrPgError

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hunter2"
ENVIRON = {"ORACLE_PASSWORD": SECRET, "PG_PASSWORD": SECRET, "METRICS_PASSWORD": SECRET}


@cache
def full() -> dict[str, Any]:
    """The full example, which is not read while the tests are collected."""
    document: dict[str, Any] = json5.loads((ROOT / "configs/oracle-to-postgres.json5").read_text())
    return document


@pytest.fixture(scope="module", autouse=True)
def _full_is_read() -> None:
    """Before Hypothesis measures what drawing takes."""
    full()


def places(value: object, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value below `value`."""
    match value:
        case dict():
            items = list(value.items())
        case list():
            items = list(enumerate(value))
        case _:
            items = []
    return [p for key, item in items for p in [(*place, key), *places(item, (*place, key))]]


def changed(place: tuple[Any, ...], value: object) -> Any:
    """The full example with another value at `place`."""
    data = copy.deepcopy(full())
    section: Any = data
    for key in place[:-1]:
        section = section[key]
    section[place[-1]] = value
    return data


def errors_of(data: object) -> str:
    try:
        parse_config(data, Path("/x"), ENVIRON)
    except ConfigError as error:
        return f"{error} {error!r} {error.problems!r}"
    return ""


PLACES = st.deferred(lambda: st.sampled_from(places(full())))
SECTIONS = st.deferred(
    lambda: st.sampled_from([name for name, value in full().items() if isinstance(value, dict)])
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["~nobody/x", "${", "${X}", "$${", "file:", "file:/", "A.B", ":1", "\0"])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4) | st.just("kind") | st.just("file"), inner)
    ),
    max_leaves=8,
)


def test_the_example_itself_is_valid() -> None:
    assert errors_of(full()) == ""


@given(PLACES, VALUES)
def test_any_value_anywhere_gives_a_configuration_or_a_coded_error(
    place: tuple[Any, ...], value: object
) -> None:
    errors_of(changed(place, value))


@given(SECTIONS, st.text(), VALUES)
def test_any_further_key_is_refused_by_name(section: str, key: str, value: object) -> None:
    assert f"{section}.{key}?: unknown key" in errors_of(changed((section, f"{key}?"), value))


SECRET_VALUES = st.sampled_from(
    [
        [SECRET],
        {"secret": SECRET},
        {"file": "/missing", "and": SECRET},
        f"${{MISSING}}{SECRET}",
        f"{SECRET}${{}}",
        {"file": ["/missing", SECRET]},
    ]
)
SECRET_PLACES = [
    ("source", "password"),
    ("apply", "connect-string"),
    ("metrics", "postgres", "connect-string"),
    ("spark", "conf", "spark.password"),
]


@given(st.sampled_from(SECRET_PLACES), SECRET_VALUES, PLACES, LEAVES)
def test_no_error_shows_a_secret(
    place: tuple[Any, ...], value: object, other: tuple[Any, ...], leaf: object
) -> None:
    assert SECRET not in errors_of(changed(place, value))
    # Resolved secrets are in the data that other errors are about.
    assert SECRET not in errors_of(changed(other, leaf))


@given(st.binary(max_size=200) | st.text(max_size=50).map(lambda text: f"{{{text}".encode()))
def test_any_bytes_give_a_coded_error(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.json"
        path.write_bytes(content)
        with pytest.raises(OlrPgError) as caught:
            load_config(path, {})
    assert caught.value.code in {1001, 1002}
