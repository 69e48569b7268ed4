"""Capture: finds archived logs, orders them, and opens them for reading."""
