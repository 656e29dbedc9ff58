"""Scores and analyses as files: schema, provenance, collection, published numbers."""
