"""The exercises of the labs, one folder each: cases, probes and compares; their goldens lie beside them."""
