"""Pages that need nothing else: one shell, one stylesheet, and a template for each kind."""
