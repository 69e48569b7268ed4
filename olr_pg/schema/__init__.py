"""Converts the source's schema for PostgreSQL: translates each kind of object, tests the statements
in the target, runs them, and compares the result.
"""
