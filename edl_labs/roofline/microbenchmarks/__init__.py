"""What is timed to find a device's ceilings, and how its highest rates are separated from disturbances."""
