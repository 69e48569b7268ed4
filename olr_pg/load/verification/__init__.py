"""Compares source and target by digests and row by row, and repairs rows."""
