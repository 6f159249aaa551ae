"""The finest grid of dual vectors, for the kernels and for what calls them."""

FINEST = 1000
"""Dual vectors are on no finer grid than 2^−FINEST: its inverse is a number still."""
