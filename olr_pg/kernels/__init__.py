"""Everything about Numba: the decorators of kernels, the cache of compiled kernels on disk, and
functions with which kernels read and write bytes.
"""
