"""Engines: whoever runs the workers, what comes back is the same integer sum.

The contract is ``Work.partial``: a record batch in, an int64 vector out, and partial sums are merged by
addition. Every engine must bring each row to a worker once and each partial sum back once.
"""
