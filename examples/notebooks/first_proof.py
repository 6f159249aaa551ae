# %% [markdown]
# # A first proof
#
# Which three measurements of a cell nucleus tell malignant tumours from benign ones best? The data is
# scikit-learn's breast cancer set: 569 tumours, 30 measurements each.

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import mipfs

frame = load_breast_cancer(as_frame=True).frame
train, test = train_test_split(frame, test_size=0.3, random_state=0, stratify=frame["target"])
data = mipfs.read(train, label="target", scale="standard")
print(data)

# %% [markdown]
# `solve` returns the best three of the thirty, and a lower bound that no other choice of three is below.

# %%
result = mipfs.solve(mipfs.Problem(data, M=3, C=1.0))
print(result.summary())
assert result.status is mipfs.Status.OPTIMAL
assert len(result.selected) == 3

# %% [markdown]
# While it ran, the best classifier fell and the bound rose until they met.

# %%
figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
result.plot_gap(axes)

# %% [markdown]
# A separate checker recomputes the bound from the data, without the solver.

# %%
report = mipfs.verify(result, data)
print(f"accepted: {report.accepted}, proven bound {report.bound:.4f}, {report.n_leaves} leaves")
assert report.accepted

# %% [markdown]
# How well does it predict tumours that it has not seen?

# %%
score = result.evaluate(test)
print(f"accuracy on {score['n_samples']} new tumours: {score['accuracy']:.3f}")
assert score["accuracy"] > 0.9
