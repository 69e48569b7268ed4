"""The target database: connections, catalogue, ledger, privileges."""
