"""The OLR TCP protocol without a socket: frames, messages, elements, and the state machines of
client and server.
"""
