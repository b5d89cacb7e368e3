"""Starts the rest of its command line and waits for it, as a starter does; a link of a chain."""

import subprocess
import sys

subprocess.run([sys.executable, *sys.argv[1:]], check=False)
