"""``python -m graphd`` is the command ``graphd``."""

import sys

from graphd_bin.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
