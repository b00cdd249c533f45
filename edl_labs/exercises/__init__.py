"""Exercise modules, one a lab: cases, probes and compares; their goldens lie beside them."""
