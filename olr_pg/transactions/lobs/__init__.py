"""Assembles LOB values from the pieces that transactions logged in the redo."""
