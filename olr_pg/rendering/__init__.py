"""Output formats for decoded row changes: JSON Lines and Arrow record batches."""
