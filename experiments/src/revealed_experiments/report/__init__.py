"""`revealed bench report DIR`: finished runs become one page that works offline.

Read in order: `reading` takes the folder in, `study` gathers the chosen runs, `claims` judges them
(`verdicts` is the frame of a claim), each module in `sections/` tells one thing, `page` puts the
sections together. `elements` and `tables` write markup, `drawing`, `curves` and `dots` draw,
`palette` says in which colors. `vision/` is what only the experiment on pictures needs.
"""

from .command import add_arguments as add_arguments
from .command import run as run
