"""Sessions of the model database and the workloads that they run."""
