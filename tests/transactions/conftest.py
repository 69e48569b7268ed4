"""The shared parts of the redo tests are found by path."""

from __future__ import annotations
