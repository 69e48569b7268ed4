"""Parses received bytes: messages to elements, chunks to values, values to columns of rows."""
