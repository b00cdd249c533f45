"""Self-contained pages: one shell, one stylesheet, and a template for each kind."""
