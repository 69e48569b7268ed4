"""Decodes splits of logs. Decoding a split is the work of a Spark task; the room also has the data
that a task needs.
"""
