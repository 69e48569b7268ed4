"""What a running appliance tells of itself: its status as values, metrics, a page."""
