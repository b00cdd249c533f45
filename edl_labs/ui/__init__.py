"""What notebooks show: reports and widgets, each with a text fallback."""
