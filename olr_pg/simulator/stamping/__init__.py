"""Large inputs: as many copies as are asked for of redo that the model has written once."""
