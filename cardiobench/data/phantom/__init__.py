"""Generated recordings with exactly known content."""

COMPONENT = "phantoms"
VERSION = 1
"""Version of all recordings generated here; increase it when one of them changes."""
