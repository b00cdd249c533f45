"""A training step layer by layer: what it holds and takes, recorded and replayed."""
