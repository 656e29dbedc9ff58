"""A run: plan, encode, evaluate, analyze, summarize."""
