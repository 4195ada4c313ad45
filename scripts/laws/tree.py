"""What the laws share: the files of a tree, and how a law ends as a command."""
import os
import sys
from pathlib import Path


def files(root, suffixes, folders=None):
    """Files of `root` with one of the suffixes, sorted, as paths relative to it: of the named folders,
    else of all that are not hidden, built or generated."""
    found = []
    for top in folders or ["."]:
        for place, names, entries in os.walk(Path(root, top)):
            names[:] = [n for n in names if not n.startswith((".", "build", "__pycache__"))]
            found += [Path(place, e).relative_to(root) for e in entries if e.endswith(suffixes)]
    return sorted(found)


def end(problems):
    """Prints the problems, one a line, and ends the process with status 1 if there is one."""
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))
