"""Changes of one table to the SQL and the COPY data that apply them."""
