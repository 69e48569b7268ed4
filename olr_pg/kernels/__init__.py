"""How this package uses Numba: the decorators of kernels, the cache of compiled kernels on disk,
and access to bytes in kernels.
"""
