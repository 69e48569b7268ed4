"""Files that survive a power failure, that are mapped to be read, or that carry results."""
