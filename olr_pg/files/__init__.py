"""Files that survive a power failure, and files that are mapped to be read."""
