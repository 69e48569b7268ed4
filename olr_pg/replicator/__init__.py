"""The loop that joins capture, decoding, server and applier: its runs, and their recovery."""
