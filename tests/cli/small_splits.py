"""Imported by a fork server, so that `decode` divides small logs into many splits."""

from __future__ import annotations

from functools import partial

from olr_pg.ordering.split_merging import thread_splits
from olr_pg.replicator import decode_once

vars(decode_once)["thread_splits"] = partial(thread_splits, split_bytes=20_000)
