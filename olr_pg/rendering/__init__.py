"""What decoding yields, for others to read: row changes → JSON Lines, Arrow record batches."""
