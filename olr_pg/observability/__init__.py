"""What an operator reads: logs, records of errors, findings of checks."""
