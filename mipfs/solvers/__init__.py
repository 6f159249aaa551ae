"""Doors to solvers, which know nothing of the problem: HiGHS, and Clarabel through CVXPY."""
