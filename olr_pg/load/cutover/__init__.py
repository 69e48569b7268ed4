"""The last steps of a migration, each one resumable."""
