"""Run the benchmark: plan, encode, evaluate, analyze and summarize."""
