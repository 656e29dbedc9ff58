"""Model cards of the networks that are trained from nothing."""
