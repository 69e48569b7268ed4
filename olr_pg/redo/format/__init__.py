"""The redo format, defined in one place: opcodes, and structures with named offsets."""
