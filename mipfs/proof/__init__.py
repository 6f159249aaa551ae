"""What a run proves: cuts, dual vectors, and the tree over the features whose leaves they bound."""
