"""What is applied together: tables, streams, slices, and the workers that apply them."""
