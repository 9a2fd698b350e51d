"""Noisy gradient descent on private rows: sampled, clipped, summed in integers, and noised.

``linear`` trains linear maps in closed form, ``networks`` any torch function by the gradients of
single rows. Both draw rows by ``drawing``, round every row's clipped gradient to whole numbers, and
add discrete Gaussian noise to their exact sum (``noisy_sums``); what follows is post-processing.
Proof: ``proofs/descent.md``.
"""
