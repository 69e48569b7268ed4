"""The applier: a client of the protocol that applies changes to PostgreSQL exactly once."""
