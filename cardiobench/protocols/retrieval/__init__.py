"""Recordings and sentences that belong together: captions made of measurements, the search for them, and negations."""
