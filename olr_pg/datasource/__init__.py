"""Redo as a source of Spark's data frames: ``spark.read.format("olr_pg")``."""
