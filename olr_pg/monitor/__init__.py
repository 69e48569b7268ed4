"""Reports the state of a running appliance: as values, metrics, and a page."""
