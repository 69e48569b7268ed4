"""Loads whole tables, verifies them and repairs them."""
