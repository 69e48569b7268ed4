"""PostgreSQL as such: the embedded cluster, and the timeouts of every connection."""
