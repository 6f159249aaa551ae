"""What CVXPY and Pyomo models have in common, and what users changed in one of them."""
