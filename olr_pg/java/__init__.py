"""The Java for Spark: which one is used, its start script, and an archive of its classes."""
