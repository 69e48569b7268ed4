"""Fallback after the cut-over: brings the transactions that PostgreSQL commits into Oracle."""
