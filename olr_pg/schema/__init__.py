"""The source's schema as PostgreSQL: statements by kind, translated, tried, applied, compared."""
