"""Oracle's functions, one row for each with its rule: text, numbers, dates, aggregates."""
