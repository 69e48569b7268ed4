"""Tables of Oracle's SQL functions: one row for each function with the rule that translates it."""
