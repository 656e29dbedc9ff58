"""Dense prediction from frozen tokens: masks and landmarks of single frames."""
