"""torch's caching allocator as a model: blocks, segments and pools, recorded and replayed."""
