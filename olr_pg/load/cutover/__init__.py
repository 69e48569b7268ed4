"""The last steps of a migration, each of which may be run again after it was interrupted."""
