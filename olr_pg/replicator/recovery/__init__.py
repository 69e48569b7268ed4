"""Bounded recovery: images of open transactions, so that a restart need not read days of redo."""
