"""Bounded recovery: stores open transactions in images, so that a restart need not read days of
redo.
"""
