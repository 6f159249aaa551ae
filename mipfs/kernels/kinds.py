"""Which pointwise loss a kernel is to take."""

SQUARED_HINGE, LOGISTIC, HINGE = 0, 1, -1
