"""Writes decoded row changes as JSON Lines, Arrow record batches and Parquet files."""
