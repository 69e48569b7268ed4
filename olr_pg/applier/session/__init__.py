"""The applier's conversation with the server, from its start position to its confirmations."""
