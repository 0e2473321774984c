"""Data sets of pictures: maps with shortest paths, and boards of digits with matchings.

terrain         made-up maps: `terrain_layout` lays out the ground, `terrain_drawing` draws it
boards          boards of the handwritten digits that `digits` finds
warcraft        loaders for the original maps, and for terrain written like them
map_folder      the layout on disk that both share; `board_folder` that of boards
folder_writer   folders that are there whole or not at all; `checksums`, `stored_files`: read so
image_set       what all of them return; `grid_paths`: paths as cells and as edges
sample_picture  a picture of samples with their decisions
"""

from .boards import digit_boards as digit_boards
from .boards import load_boards as load_boards
from .boards import write_boards as write_boards
from .image_set import ImageSet as ImageSet
from .image_set import ImageSplit as ImageSplit
from .terrain import terrain as terrain
from .terrain import write_terrain as write_terrain
from .warcraft import load_terrain as load_terrain
from .warcraft import load_warcraft as load_warcraft

__all__ = [
    "ImageSet",
    "ImageSplit",
    "digit_boards",
    "load_boards",
    "load_terrain",
    "load_warcraft",
    "terrain",
    "write_boards",
    "write_terrain",
]
