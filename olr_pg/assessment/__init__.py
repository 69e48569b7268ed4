"""Assesses the source's schemas: lists their objects, says which are migrated automatically, and
estimates the effort for the others.
"""
