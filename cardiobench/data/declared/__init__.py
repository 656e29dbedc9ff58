"""Datasets declared in a file, `dataset.yaml`, instead of a builder: a spec as data, read by one builder for all of them."""
