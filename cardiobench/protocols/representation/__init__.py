"""Representation: which dimensions a classifier uses, and whether labels or datasets shape the embedding space."""
