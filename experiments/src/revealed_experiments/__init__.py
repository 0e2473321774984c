"""The laboratory of `revealed`: benchmarks, the pages that report them, and learning from pictures.

    bench/    `revealed bench ...`: experiments, each of which writes its figures as JSON
    report/   `revealed bench report DIR`: a folder of finished runs as one page
    vision/   networks that turn pictures into costs, and their training
    images/   data sets of pictures: maps with shortest paths, boards of digits with matchings

It uses `revealed` as any user does; `revealed` knows nothing of it.
"""
