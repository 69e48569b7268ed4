"""What the driver of Oracle does not do itself: bounds of its calls, and words for its errors."""
