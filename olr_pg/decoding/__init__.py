"""Decodes splits of logs. This is the work of a Spark task; the room also has the data that a task
needs.
"""
