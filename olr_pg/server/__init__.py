"""Sockets around the wire protocol; ready queue and checkpoint file."""
