"""Converts changes of one table to SQL statements and COPY data."""
