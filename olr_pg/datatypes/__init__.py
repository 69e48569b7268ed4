"""Oracle column values in both directions, one file per type family. No I/O."""
