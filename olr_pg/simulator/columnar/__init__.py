"""The simulator's fast path: named workloads, carried out and written by compiled kernels."""
