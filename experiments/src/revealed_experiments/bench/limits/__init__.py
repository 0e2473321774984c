"""Unknown limits: are projections exact, limits recovered, intervals honest?"""
