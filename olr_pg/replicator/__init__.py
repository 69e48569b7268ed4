"""The loop that joins capture, decoding, server and applier."""
