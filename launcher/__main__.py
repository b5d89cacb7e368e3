"""`python -m launcher`: the same as the `launcher` command."""

import sys

from launcher.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
