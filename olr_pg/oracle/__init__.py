"""The live Oracle source: its dictionary, its archived logs, and what is wrong with it."""
