"""Data sets of pictures: maps with shortest paths, and boards of digits with matchings.

    terrain         made-up maps: `terrain_layout` lays out the ground, `terrain_drawing` draws it
    boards          boards of the handwritten digits that `digits` finds
    warcraft        loaders for the original maps, and for terrain written like them
    map_folder      the layout on disk that both share; `board_folder` that of boards
    folder_writer   folders that are there whole or not at all; `checksums`, `stored_files`: read so
    image_set       what all of them return; `grid_paths`: paths as cells and as edges
    sample_picture  a picture of samples with their decisions

`revealed.data` has the names that users call.
"""
