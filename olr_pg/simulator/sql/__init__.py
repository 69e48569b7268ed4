"""SQL for the model: statements are parsed, evaluated on its rows, and written as redo."""
