"""What a run proves: cuts, dual vectors, the tree over the features, and the file beside a result."""
