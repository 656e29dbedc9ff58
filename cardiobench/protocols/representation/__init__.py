"""What an embedding is made of: which dimensions a classifier leans on, and whether labels or datasets shape the space."""
