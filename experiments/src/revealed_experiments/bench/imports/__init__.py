"""Models written in other tools, learnt with from end to end."""
