"""Scores and analyses as files: schemas, provenance, collection and published values."""
