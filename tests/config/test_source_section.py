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
