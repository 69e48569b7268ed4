"""Builds and applies batches: queues, streams, slices, and the workers' appliers."""
