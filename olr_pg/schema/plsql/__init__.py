"""Translates common PL/SQL into PL/pgSQL, or returns the reason why it cannot be translated."""
