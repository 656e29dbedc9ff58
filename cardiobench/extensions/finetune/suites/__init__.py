"""Suites of fine-tuned models."""
