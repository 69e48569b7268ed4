"""Conditions on the columns of a row (`filter.rows`): parsed, typed per table, evaluated."""
