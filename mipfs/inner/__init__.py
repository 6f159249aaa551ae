"""Inner problems: v(σ) and its relaxations over columns that are handed in."""
