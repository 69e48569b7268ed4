"""A database for the tests of a module, whose schema each case makes anew."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def database(module_database: str) -> str:
    """The connection string."""
    return module_database
