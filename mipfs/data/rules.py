"""The rules by which a file becomes columns, and columns are scaled: their versions, of which a result names its own.

Results are read, scaled and checked by the version that they name, for ever; docs/certificate.md has all of them.
"""

FIRST_RULES = 1
"""Of results that name none."""
RULES = 2
"""Of results that are written now."""
KNOWN_RULES = (FIRST_RULES, RULES)
