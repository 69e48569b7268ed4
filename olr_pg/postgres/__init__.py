"""Code for any use of PostgreSQL: the embedded cluster, connections with time limits, and the
handling of errors.
"""
