"""Pages that people look at: an internal one over real rows, and a public one over a release."""
