"""Which archived logs exist, in which order, and reading them."""
