"""Redo bytes to change vectors to row-change pieces. No I/O."""
