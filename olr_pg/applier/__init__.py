"""The protocol client that applies changes to PostgreSQL exactly once."""
