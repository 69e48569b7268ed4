"""Brings the redo threads into one order of commits: merging, release, transaction filters,
accounting.
"""
