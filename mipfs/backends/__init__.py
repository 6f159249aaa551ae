"""Doors to the solvers that are not ours: HiGHS (MILP), Clarabel through CVXPY, SCIP (optional)."""
