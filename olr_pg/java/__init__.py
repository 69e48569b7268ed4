"""The Java that Spark runs on: which one, its start script, and an archive of its classes."""
