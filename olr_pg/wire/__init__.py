"""The OLR TCP protocol without a socket: frames, messages, elements, state machine."""
