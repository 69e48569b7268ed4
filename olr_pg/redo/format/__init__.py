"""Writes the redo format down, once: opcodes, and structures with named offsets; others read it."""
