"""Questions that a release answers for ever after, at no further privacy cost."""
