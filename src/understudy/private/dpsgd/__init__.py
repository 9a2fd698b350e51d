"""DP-SGD (Abadi et al. 2016): Poisson subsampling, per-example gradient clipping, exact sums, discrete Gaussian noise.

``linear`` trains linear maps in closed form, ``networks`` any torch function by per-example gradients. Both draw
rows by ``steps.drawn_rows``, round every row's clipped gradient to integers, and add discrete Gaussian noise to their
exact sum (``steps.noisy_sum``); what follows is post-processing.
Proof: ``proofs/descent.md``.
"""
