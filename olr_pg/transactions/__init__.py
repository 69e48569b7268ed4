"""Assembly of row changes by transaction into complete DML in commit order. No I/O."""
