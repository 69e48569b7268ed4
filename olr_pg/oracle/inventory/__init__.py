"""What is in the schemas of a live database: views of the dictionary, rows, the inventory."""
