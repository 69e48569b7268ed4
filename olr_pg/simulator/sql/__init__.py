"""SQL for the model: parses statements, executes them on its rows, and writes their redo."""
