"""Conditions on the columns of a row (`filter.rows`): parsing, typing for a table, evaluation."""
