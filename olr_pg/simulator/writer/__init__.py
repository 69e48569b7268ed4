"""Writes the changes of the model as change vectors, records and log files."""
