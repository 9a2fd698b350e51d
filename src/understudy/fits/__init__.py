"""From a release to a generator: post-processing, without private rows (torch, loaded lazily)."""
