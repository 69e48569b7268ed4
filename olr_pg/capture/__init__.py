"""Capture: which archived logs exist, in which order, and reading them."""
