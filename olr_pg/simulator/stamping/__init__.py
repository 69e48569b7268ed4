"""Makes large inputs: any number of copies of redo that the model has written once."""
