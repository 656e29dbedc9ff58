"""Task suites of fine-tuned models."""
