"""Extends Oracle's driver: timeouts for its calls, and our error codes for its errors."""
