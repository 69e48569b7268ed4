"""Decoding one split of a log: what a Spark task does, and what it needs to know."""
