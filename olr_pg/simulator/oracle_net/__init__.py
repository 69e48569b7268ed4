"""A stand-in for Oracle, for tests and ``olr-pg simulate --serve``: a server to which Oracle's
driver can connect.
"""
