"""All matplotlib of the library: each function takes values and axes, and returns the axes."""
