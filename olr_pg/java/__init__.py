"""Chooses the Java on which Spark runs; writes a start script for it, and an archive of Spark's
classes.
"""
