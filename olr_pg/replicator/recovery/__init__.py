"""Bounded recovery: images of open transactions, so that a restart does not need to read days of
redo.
"""
