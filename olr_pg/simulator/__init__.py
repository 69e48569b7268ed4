"""A model of Oracle that writes redo byte for byte: for tests, demo and benchmarks."""
