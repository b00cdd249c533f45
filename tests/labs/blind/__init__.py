"""Blind batches: answers that were written before anybody saw what they are told. README.md has the method."""
