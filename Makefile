# Each target wraps one short script in scripts/, which can be called without make as well.
.PHONY: quickstart quickstart-lm test lint configs recipes rehearse fault-test bench gpu-check help

help:            ## this list
	@grep -E '^[a-z-]+: +##' Makefile | sed 's/: *##/:/'

quickstart:      ## set up .venv and fine-tune the default recipe
	@bash scripts/quickstart.sh quickstart

quickstart-lm:   ## the same with a small language model and LoRA
	@bash scripts/quickstart.sh quickstart_lm

test:            ## set up .venv and run every test
	@bash scripts/test.sh

lint:            ## ruff, mypy, import layers
	@bash scripts/lint.sh

configs:         ## write ds_configs/ and accelerate_configs/ again
	@environment=$$(bash scripts/setup.sh test) && "$$environment/bin/python" -m launcher.backends.render

recipes:         ## plan every shipped recipe again: recipes/README.md, index.json and the files' first lines
	@environment=$$(bash scripts/setup.sh test) && "$$environment/bin/python" scripts/make_recipe_table.py

rehearse:        ## rehearse every shipped recipe on CPU processes: a quarter of an hour on two cores
	@environment=$$(bash scripts/setup.sh test) && "$$environment/bin/python" scripts/rehearse_library.py

fault-test:      ## 210 faults into real runs, and the undisturbed run's numbers after each: half an hour
	@environment=$$(bash scripts/setup.sh test) && "$$environment/bin/python" -m tests.faults.suite

bench:           ## the benchmarks: minutes to an hour
	@bash scripts/bench.sh

gpu-check:       ## measured against predicted memory on this card: five minutes; PYTHON=... names the environment
	@$${PYTHON:-python3} benchmarks/gpu_check.py
