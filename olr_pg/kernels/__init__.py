"""The rules of Numba's use: kernels are compiled, kept on disk, and store bytes here."""
