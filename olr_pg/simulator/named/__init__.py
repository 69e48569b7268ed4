"""The named workloads, carried out and written by compiled kernels."""
