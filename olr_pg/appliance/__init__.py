"""The running appliance: makes its parts, starts them, watches them, reloads the configuration, and
ends them.
"""
