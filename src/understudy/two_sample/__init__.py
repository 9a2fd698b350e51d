"""Is a table what a release was made of, or two releases of one kind? Tests that know the privacy noise."""
