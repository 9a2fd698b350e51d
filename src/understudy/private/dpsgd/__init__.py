"""DP-SGD (Abadi et al. 2016): Poisson subsampling, per-example gradient clipping, exact sums, discrete Gaussian noise.

``classifier`` trains linear maps in closed form, ``networks`` any torch function by per-example gradients. Both round
every row's clipped gradient to integers and sum these exactly; ``steps.Descent`` draws the rows and adds discrete
Gaussian noise to the sum. What follows is post-processing.
Proof: ``proofs/descent.md``.
"""
