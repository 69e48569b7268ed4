"""The applier's session with the server: start position, received changes, confirmations."""
