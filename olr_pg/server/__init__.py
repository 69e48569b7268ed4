"""The ports of the wire protocol: sockets and sessions, the ready queue, and the checkpoint
file.
"""
