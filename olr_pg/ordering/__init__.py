"""Redo threads to one order of commits: merging, release, filters of transactions, accounting."""
