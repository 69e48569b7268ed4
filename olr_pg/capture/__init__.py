"""Capture finds redo logs, orders them, and opens them for reading."""
