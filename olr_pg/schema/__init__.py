"""Converts the source's schema for PostgreSQL: translates each kind of object, tries and applies
the statements, and compares the result.
"""
