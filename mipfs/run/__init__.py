"""What every driver runs in: state and limits, supports and their search, validation, what is carried over, the end."""
