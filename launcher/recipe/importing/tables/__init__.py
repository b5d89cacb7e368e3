"""The keys of every tool beside ours: data alone, applied by `draft` and printed in the manual."""
