"""Many solves: the ladder of relaxations, paths over M, C, λ and rows, folds."""
