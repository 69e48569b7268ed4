"""What operators read: log events, records of errors, findings of checks."""
