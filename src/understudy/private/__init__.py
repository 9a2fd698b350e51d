"""The only package that ever sees private rows.

Nothing leaves it but the noisy vectors of a plan, after the ledger has been charged.
"""
