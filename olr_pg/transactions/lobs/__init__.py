"""LOB values put together from the pieces that a transaction logged."""
