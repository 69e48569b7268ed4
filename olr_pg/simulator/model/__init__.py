"""The model database: tables, blocks, transactions and LOBs, as values."""
