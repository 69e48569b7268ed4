"""The running appliance: creates, starts, watches and ends its parts, and reloads the
configuration.
"""
