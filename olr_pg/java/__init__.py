"""Chooses the Java for Spark; writes its start script and an archive of its classes."""
