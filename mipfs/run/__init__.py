"""What every driver runs in, while it runs: state and limits, supports and their search, what is carried over."""
