"""Files that survive a power failure, that are mapped for reading, or that transfer results."""
