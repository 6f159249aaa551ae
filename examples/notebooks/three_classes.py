# %% [markdown]
# # Three classes, one selection
#
# Three cultivars of wine, 13 chemical measurements. Each class has a classifier against the rest. With
# `shared_support=True` a measurement counts once, however many classes use it: here the laboratory takes four.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import mipfs

X, y = load_wine(return_X_y=True, as_frame=True)
names = load_wine().target_names[y]
X_train, X_test, y_train, y_test = train_test_split(X, names, test_size=0.4, random_state=0, stratify=y)
shared = mipfs.FSPClassifier(M=4, C=1.0, scale="standard", shared_support=True).fit(X_train, y_train)
print(shared.result_)
print(*shared.get_feature_names_out(), sep=", ")
assert shared.verify(X_train, y_train).accepted

# %% [markdown]
# Each class by itself may choose four of its own; together they then need more measurements.

# %%
separate = mipfs.FSPClassifier(M=4, C=1.0, scale="standard").fit(X_train, y_train)
for title, model in (("one selection", shared), ("one for each class", separate)):
    right = model.score(X_test, y_test)
    print(f"{title}: {model.support_.sum()} measurements, {right:.1%} of {len(y_test)} new wines are right")
assert shared.support_.sum() <= 4 < separate.support_.sum()

# %%
worth = shared.coef_[:, shared.support_] * X_train.std(ddof=0).to_numpy()[shared.support_]
figure, axes = plt.subplots(figsize=(7.2, 3.0), layout="constrained")
places = np.arange(shared.support_.sum())
for k, label in enumerate(shared.classes_):
    axes.bar(places + 0.27 * (k - 1), worth[k], width=0.25, label=label)
axes.set_xticks(places, shared.get_feature_names_out())
axes.set_ylabel("weight on the scaled data")
axes.axhline(0.0, color="grey", linewidth=0.8)
axes.legend(frameon=False)
