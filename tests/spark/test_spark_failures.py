"""What Spark raises, as errors of the catalogue."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

from olr_pg.errors import OlrPgError
from olr_pg.spark.jobs import spark_errors


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("Error from python worker:\nModuleNotFoundError: No module named 'olr_pg'", "package"),
        ("/usr/bin/python3: Error while finding module: No module named olr_pg", "package"),
        ('java.io.IOException: Cannot run program "/opt/venv/bin/python": error=2', "Python is"),
        ("PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has", "version"),
        ("RuntimeError: cannot cache function 'f': no locator available", "kernels"),
    ],
)
def test_what_a_machine_lacks_is_said(words: str, meaning: str) -> None:
    with pytest.raises(OlrPgError, match=meaning) as raised, spark_errors():
        raise Py4JError(words)
    assert raised.value.code == 6008
    assert words.splitlines()[-1] in raised.value.detail
