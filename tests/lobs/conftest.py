"""Decoding logs of LOB redo to JSON lines."""

from __future__ import annotations
