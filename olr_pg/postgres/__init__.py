"""PostgreSQL in general: the embedded cluster, connections with time limits, and the meaning of
errors.
"""
