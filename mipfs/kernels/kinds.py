"""Constants of the kernels and of what calls them: which pointwise loss a kernel is to take, and the finest grid."""

SQUARED_HINGE, LOGISTIC, HINGE = 0, 1, -1
FINEST = 1000
"""Dual vectors are on no finer grid than 2^−FINEST: its inverse is a number still."""
