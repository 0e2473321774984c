"""Limits that nobody wrote down, learned from decisions as functions of the context.

labels     which unknown limits can be active at a decision
censored   regression on values that are limits where active, and below limits elsewhere
model      `LimitModel`: what is learned; its intervals and report
mixture    labels and limits together, where decisions alone do not tell which limit is active
learning   labels, limits and costs in turn; what the estimator and `learn_limits` call
"""
