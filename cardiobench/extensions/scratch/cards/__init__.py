"""Model cards of networks trained from scratch."""
