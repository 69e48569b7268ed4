"""Received bytes to columns: answers to elements, chunks to values, values to rows."""
