"""OLR's own configuration file as it is in configs/, with its command, on a live database."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.server.manual_client import ManualClient
from tests.server.manual_run import manual_run, olr_file
from tests.server.manual_truth import check_transaction, read_truth, receive_transaction

if TYPE_CHECKING:
    from pathlib import Path

    from tests.oracle.live_source import LiveSource

QUERY = "SELECT owner, table_name FROM all_tables WHERE owner = 'SHOP'"


@pytest.mark.timeout(900)
def test_the_file_of_the_manual_serves_a_live_database(live: LiveSource, tmp_path: Path) -> None:
    folder = live.summary.logs[0].parent.parent
    truth = read_truth(folder / "truth.jsonl")
    # The logs are where the file maps them to; only where the database listens is the test's.
    document = olr_file()
    document["source"]["server"] = live.server.connect_string
    (tmp_path / "sim" / "logs").mkdir(parents=True)
    for path in live.summary.logs:
        shutil.copy(path, tmp_path / "sim" / "logs")
    while live.waiting:
        live.archive(copied=False)
    with (
        manual_run(tmp_path, document) as (address, printed),
        ManualClient(address) as client,
    ):
        client.table_list(QUERY)
        client.start_scn(0)
        for lines in truth:
            check_transaction(receive_transaction(client, 0), lines)
        confirmed = int(truth[-1][0]["commit_scn"])
        assert client.last_commited_scn(confirmed) is None
        saved = client.saved_scn()
        assert saved is not None
        assert saved >= int(truth[-1][0]["scn"])
        client.log_off()
    assert (tmp_path / "olr_data" / "checkpoint.json").exists()
    assert sum("context.memory.min-mb" in line for line in printed) == 1
