"""Prints redo for people: logs as text, incident files, masked data, counts."""
