"""Reads the inventory of schemas in a live database from the dictionary views."""
