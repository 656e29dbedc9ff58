"""Generated recordings whose content is known exactly."""

COMPONENT = "phantoms"
VERSION = 1
"""Covers all recordings that this folder draws; count it up when one of them changes."""
