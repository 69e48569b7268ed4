"""Log events, records of errors, findings of checks, and other output for operators."""
