"""Tables that stopped: what is held for them, why they stopped, and what DDL does to them."""
