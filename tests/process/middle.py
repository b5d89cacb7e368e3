"""Starts the rest of its command line and waits for it, as a starter does; a link of a chain."""

import subprocess
import sys

# not subprocess.run: interrupted, it would kill its child itself
subprocess.Popen([sys.executable, *sys.argv[1:]]).wait()
