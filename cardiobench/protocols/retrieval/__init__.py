"""Retrieval between recordings and captions made of measurements, and the understanding of negations."""
