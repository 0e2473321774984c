"""Models written in other tools, learned with from end to end."""
