"""Assembles LOB values from the pieces that a transaction logged."""
