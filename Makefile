# Everything that a person or CI does here, by name. The work is done by the scripts in tools/.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.PHONY: help setup build demo test asan tsan fuzz format format-check bench bench-peers bench-table clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

setup: ## install the Debian packages that are missing (the others do this first)
	@tools/setup.sh build

build: setup ## the program, at build/ferry
	@tools/build.sh release ferry
	@echo "The program is build/ferry."

demo: build ## build, then detect in a real picture with real weights
	@tools/demo.sh

test: setup ## every check: unit tests, sanitizers, fuzz corpora, headers, layers, format, installed package
	@tools/test.py

asan: setup ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer, fuzz corpora included
	@tools/test.py asan

tsan: setup ## the tests where threads meet, under ThreadSanitizer
	@tools/test.py tsan

fuzz: ## libFuzzer: every target for FUZZ_SECONDS (60), or FUZZ_TARGETS="zip_pickle …"
	@tools/setup.sh build fuzz
	@tools/fuzz.sh

format: setup ## format the C++ sources in place
	@tools/format.sh

format-check: setup ## fail when a C++ source is not formatted
	@tools/format.sh --check

bench: setup ## build the benchmarks of kernels and post-processing, in build/bench; for whole models: build/ferry bench
	@tools/build.sh release all
	@ls build/bench/*_bench

bench-peers: setup ## install the engines that `ferry bench --peers` compares with, in build/peers-venv (6 GB)
	@tools/bench_peers.sh

bench-table: build ## measure what docs/performance.md lacks for this commit and write it (20 minutes, on an idle machine)
	@bench/run_table.py

clean: ## remove what the targets above have built (not runs/)
	rm -rf build build-debug build-asan build-tsan build-fuzz
