"""Recordings that are drawn, not measured, so that what they show is known exactly."""
