"""Changes of the model to change vectors, records and log files."""
