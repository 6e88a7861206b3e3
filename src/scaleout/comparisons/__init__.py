"""Is it faster, and how sure is that? Variants in rounds, the baseline against itself first."""
