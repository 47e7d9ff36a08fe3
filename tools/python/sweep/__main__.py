"""python -m sweep: the program, with the same arguments."""
import os
import sys

from sweep import binary

os.execv(binary(), ["sweep", *sys.argv[1:]])
