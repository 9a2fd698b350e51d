"""Locally linear maps: a classifier that explains itself (Harder, Bauer & Park 2020).

Nothing here sees a private row: maps are trained by ``private/dpsgd/classifier.py``, which reads the rows.
Prediction and explanation are NumPy alone.
"""
