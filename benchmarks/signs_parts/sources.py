"""The signs that descriptions of data sets speak for, towards the class +1, with what the description says."""

from __future__ import annotations

NAMED = ("german", "australian", "heart_statlog")
"""Sets with signs."""
SETS = (*NAMED, "pima", "wdbc_sklearn", "ionosphere", "sonar")
SIZES, WEIGHTS, BOXES = (5, 10), (0.1, 1.0, 10.0), (1, 2, 4)

SOURCES: dict[str, dict[str, tuple[int, str]]] = {
    "german": {
        "Duration": (-1, "months that the loan runs: longer is riskier"),
        "Credit": (-1, "amount of the loan: more is riskier"),
        "Installment-rate": (-1, "rate in percent of disposable income: a heavier burden"),
        "Liable-people": (-1, "people to maintain: a heavier burden"),
        "Age": (1, "years"),
        "Residence-time": (1, "years at the present residence: steadier"),
    },
    "heart_statlog": {
        "age": (1, "years: a risk factor"),
        "sex": (1, "1 = male: a risk factor"),
        "resting_blood_pressure": (1, "mm Hg: a risk factor"),
        "serum_cholestoral": (1, "mg/dl: a risk factor"),
        "fasting_blood_sugar": (1, "1 where above 120 mg/dl: a risk factor"),
        "maximum_heart_rate_achieved": (-1, "the healthy heart reaches more"),
        "exercise_induced_angina": (1, "1 = yes: a symptom"),
        "oldpeak": (1, "ST depression by exercise: a symptom"),
        "number_of_major_vessels": (1, "0 to 3, coloured by fluoroscopy: the original field names narrowed ones"),
    },
}
"""By set: feature, its sign, and the meaning that the description of the data at UCI (Statlog) gives it.

The classes +1 are the good credit and the presence of heart disease. Features whose codes have no order are left free,
such as most of german's: its codes here are not those of the description. Of australian the description says that all
names and values were changed to meaningless symbols: no source gives a sign.
"""


def key_of(name: str, what: str, M: int, C: float) -> str:
    """What a line is stored under."""
    return f"{name} {what} M={M} C={C:g}"
