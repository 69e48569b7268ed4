"""Whole tables: the initial load, verification and repair."""
