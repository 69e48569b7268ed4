"""A stand-in for Oracle, for tests only: a server that the real Oracle driver can connect to."""
