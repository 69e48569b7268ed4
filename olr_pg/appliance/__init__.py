"""The running appliance: its parts put together, started, watched, reloaded and ended."""
