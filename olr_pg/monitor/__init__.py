"""Tells how a running appliance is: its status as values, metrics, a page."""
