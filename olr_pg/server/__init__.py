"""Sockets for the wire protocol; the ready queue and the checkpoint file."""
