"""Redo for people to read: logs as text, incident files, masked data, counts."""
