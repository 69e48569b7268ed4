"""Decodes redo bytes: to change vectors, and from these to pieces of row changes. No I/O."""
