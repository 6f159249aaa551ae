"""The rules by which a file becomes columns, columns are scaled and rows hold: a result names a version of them.

Results are read, scaled and checked by the version that they name, for ever; docs/certificate.md has all of them.
"""

FIRST_RULES = 1
"""Of results that name none."""
STATED_RULES = 2
"""The first by which the stated shift and scale define every value, however the data is stored."""
EXACT_RULES = 3
"""The first by which whole variables enter rows exactly."""
CELLS_RULES = 4
"""The first by which text in a data frame or a Parquet file is read as the cells of a CSV file are."""
WEIGHED_RULES = 5
"""The first by which means and deviations weigh the samples."""
TWO_WORDS_RULES = 5
"""The first by which a column of two words makes one feature."""
BOOLEAN_RULES = 6
"""The first by which True and False are numbers as features, and labels of their own kind as labels."""
RULES = 6
"""Of results that are written now."""
KNOWN_RULES = (FIRST_RULES, STATED_RULES, EXACT_RULES, CELLS_RULES, WEIGHED_RULES, BOOLEAN_RULES)


def scaling_of(rules: int) -> int:
    """The first version of the rules by which columns are scaled as by this one."""
    return max(one for one in (FIRST_RULES, STATED_RULES, WEIGHED_RULES) if one <= rules)
