"""Disturbances of recordings, and how much of a score survives them."""
