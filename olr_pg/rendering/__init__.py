"""What decoding yields, for others to read: messages → JSON Lines, Arrow record batches."""
