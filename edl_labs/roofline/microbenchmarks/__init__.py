"""What is timed to find a device's ceilings, and how its highest rates are told from disturbances."""
