"""Preprocessing and weight loading of ECG foundation models."""
