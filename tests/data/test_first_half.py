"""What a recipe's check reaches of this folder stays light."""

import subprocess
import sys

HEAVY = ("torch", "transformers", "numpy", "tokenizers", "datasets")
PROBE = f"""
import sys
from launcher.data.format import FORMATS
from launcher.data.layout import LAYOUTS
from launcher.data.options import DataOptions
DataOptions(train_file="a.csv")
assert FORMATS.names() and LAYOUTS.names()
print(*[name for name in {HEAVY} if name in sys.modules])
"""


def test_options_formats_and_layouts_import_nothing_heavy(root):
    done = subprocess.run([sys.executable, "-c", PROBE], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
