"""Decodes splits of logs: the work of a Spark task, and the data that it needs."""
