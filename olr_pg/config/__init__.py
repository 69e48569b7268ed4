"""Reads the configuration file: its sections, the types of their keys, and messages about its
errors.
"""
