"""An Oracle stand-in for tests alone: a server that the real Oracle driver can talk to."""
