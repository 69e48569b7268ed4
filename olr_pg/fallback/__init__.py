"""Fallback after the cut-over: replicates the transactions that commit in PostgreSQL to Oracle."""
