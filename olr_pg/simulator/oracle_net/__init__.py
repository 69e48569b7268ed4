"""An Oracle stand-in for tests: a server that the real Oracle driver can talk to. No product."""
