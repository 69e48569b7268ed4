"""PL/SQL of everyday schemas as PL/pgSQL, or the reason why not."""
