"""Reads and validates the configuration file, and describes the errors in it."""
