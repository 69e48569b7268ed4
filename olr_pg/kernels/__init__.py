"""How Numba is used: the decorators of kernels, their files on disk, bytes inside of them."""
