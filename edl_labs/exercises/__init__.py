"""The exercises of the labs, one folder each: cases, probes and compares; their goldens are next to them."""
