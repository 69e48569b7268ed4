"""Assesses the source's schemas: what they contain, what is migrated automatically, and the effort
for the rest.
"""
