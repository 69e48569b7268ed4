"""Translates PL/SQL of everyday schemas into PL/pgSQL, or returns the reason why it cannot."""
