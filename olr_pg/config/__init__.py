"""The configuration file: its sections, their types, and messages about what is wrong in it."""
