"""``olr-pg migrate``: steps from an empty target to one that is ready for the cut-over."""
