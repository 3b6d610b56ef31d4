"""`simulate`: what it takes and yields, its checks, and its reference."""
