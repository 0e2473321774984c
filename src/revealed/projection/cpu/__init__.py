"""Plain costs on the CPU: compiled Newton steps on several instances at once, and fallbacks.

analysis      what all projections onto one problem's sets share (`dependent`, `spread`)
kernel        the compiled route: `newton`, `interior`, on `factor`, `group` and `simd`
certificate   from multipliers to a point with its residual; `verify` proves doubtful ones
fallback      slower solvers for single instances; `reference` and `exact` are two of them
"""
