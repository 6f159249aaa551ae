"""Data and labels: the instance, its matrix, names and checks."""
