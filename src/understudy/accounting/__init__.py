"""Privacy accounting: ``mechanisms`` (budgets, Gaussian and Laplace noise), ``dpsgd`` (noisy gradient descent)."""
