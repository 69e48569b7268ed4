"""Scenarios of SQL that show whether each form of change is read right, and what judges them."""
