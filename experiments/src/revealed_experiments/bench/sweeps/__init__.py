"""Many runs of one experiment: what a run is, how one and many are performed, which is shown."""
