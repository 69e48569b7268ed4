"""Replicates Oracle into PostgreSQL by reading Oracle's binary redo logs."""
