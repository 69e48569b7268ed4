"""Writes what operators read: log events, records of errors, findings of checks."""
