# %% [markdown]
# # How many features?
#
# The number of features M is chosen by cross-validation: for every M the problem is solved to proven optimality on each
# training part, and its classifier is judged on the rows that were held out.

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import mipfs

frame = load_breast_cancer(as_frame=True).frame
data = mipfs.read(frame, label="target", scale="standard")
path = mipfs.path(mipfs.Problem(data, C=0.1), M=[1, 2, 3, 4, 6], folds=5, seed=0)
print(path.summary())
assert all(point.status is mipfs.Status.OPTIMAL for point in path.points)

# %% [markdown]
# The validation error falls with the first features and then stays flat. The bars are one standard error.

# %%
figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
sizes = [point.place["M"] for point in path.points]
errors = [point.error for point in path.points]
axes.errorbar(sizes, errors, [point.standard_error for point in path.points], marker="o", capsize=3)
axes.set_xlabel("M")
axes.set_ylabel("validation error")

# %% [markdown]
# The one-standard-error rule takes the smallest M whose error is within one standard error of the least.

# %%
best, simple = path[path.least_error], path[path.one_se]
print(f"least error: {len(best.selected)} features, error {best.error:.3f}")
print(f"one standard error: {len(simple.selected)} features, error {simple.error:.3f}: {', '.join(simple.selected)}")
assert len(simple.selected) <= len(best.selected)
assert mipfs.verify(simple.result, data).accepted
