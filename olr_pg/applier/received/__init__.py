"""Received bytes to columns: elements, chunks, rows."""
