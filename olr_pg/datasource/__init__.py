"""Provides archived redo as a Spark data source: ``spark.read.format("olr_pg")``."""
