"""What is in the source's schemas, what of it is carried over, and what the rest will cost."""
