"""Brings the commits of all redo threads into one order: merging, release, transaction filters,
accounting.
"""
