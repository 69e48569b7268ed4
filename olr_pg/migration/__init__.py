"""``olr-pg migrate``: from an empty target to one that is ready to be cut over to, in steps."""
