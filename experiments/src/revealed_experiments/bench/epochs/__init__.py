"""Training beside PyEPO: how long an epoch takes, and whether both end at the same regret."""
