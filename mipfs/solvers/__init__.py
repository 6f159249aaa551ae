"""Doors to programs of others, which know nothing of the problem: HiGHS, Clarabel, SCIP."""
