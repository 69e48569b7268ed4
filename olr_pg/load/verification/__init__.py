"""Source and target compared by digests and row by row, and repaired."""
