"""What can be selected. Drivers see atoms only through v in R^n (ω = X'v), never X itself."""
