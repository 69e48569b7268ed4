"""The last steps of a migration; each can be repeated after an interruption."""
