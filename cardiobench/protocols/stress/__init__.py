"""Disturbed recordings: what is done to them, and how much of a score survives it."""
