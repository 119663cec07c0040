# `make help` lists the targets. Servers and processes are handled by the scripts in deploy/dev.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test up down wipe soak chaos bench lint servers-test

DEV := deploy/dev
# Where cargo puts what it builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)

# rust-toolchain.toml pins a version by its number. A machine without downloads may have that version
# under another name, such as `stable`, only: then rustup would refuse, and that one is taken.
ifeq ($(shell cargo --version 2>/dev/null),)
PINNED := $(shell sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
export RUSTUP_TOOLCHAIN := $(shell for name in $$(rustup toolchain list 2>/dev/null | cut -d' ' -f1); do \
	if [[ $$(RUSTUP_TOOLCHAIN=$$name rustc --version 2>/dev/null) = "rustc $(PINNED) "* ]]; then echo $$name; break; fi; done)
endif

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## a small town of chatting users, its views, and their audit; ONCE=1 ends by itself
	cargo build --release --package tidemark
	TIDEMARK_DEV=.tidemark/demo $(DEV)/with-servers $(TARGET)/release/tidemark demo $(if $(ONCE),--once)

# One selection of packages throughout: another one would build dependencies again, with other features.
test: lint ## lint, unit and property tests, then those that need servers, with servers of their own
	cargo test --workspace --exclude tidemark-e2e
	cargo test --workspace --no-run
	TIDEMARK_DEV=.tidemark/test $(DEV)/with-servers cargo test --workspace --test real -- --ignored --test-threads 1
	TIDEMARK_DEV=.tidemark/test $(DEV)/with-servers cargo test --workspace --test town --test pipeline --test windows
	TIDEMARK_CHAOS=short TIDEMARK_DEV=.tidemark/test TIDEMARK_SERVERS=cluster $(DEV)/with-servers \
		cargo test --workspace --test chaos -- --ignored --nocapture

up: ## servers, setup, a gateway on 127.0.0.1:8080 and a projector per view, in the background
	@$(DEV)/system up

down: ## stop what `make up` started; the data is kept
	@$(DEV)/system down

wipe: ## `make down`, and forget the data
	@$(DEV)/system down --wipe

# About 70 crash points a seed. SEEDS=15000..30000 goes on where an earlier soak ended.
SEEDS ?= 15000
soak: ## a million crash points through the simulator: 15 minutes on two cores, SEEDS=… for more or others
	@git log -1 --format='at commit %h' 2>/dev/null || true
	TIDEMARK_SIM_SEEDS=$(SEEDS) cargo test --release --workspace --test sim -- --nocapture exact_whatever

chaos: ## kill, freeze and restart workers, brokers and nodes under load: 15 minutes, 4 GB
	cargo test --release --workspace --no-run
	TIDEMARK_DEV=.tidemark/chaos TIDEMARK_SERVERS=cluster $(DEV)/with-servers \
		cargo test --release --workspace --test chaos -- --ignored --nocapture

bench: ## measurements, with servers set up for them (6 GB)
	cargo build --release --package tidemark
	TIDEMARK_DEV=.tidemark/bench TIDEMARK_SERVERS=bench $(DEV)/with-servers $(TARGET)/release/tidemark bench

lint: ## formatting, clippy and documentation, warnings denied
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps

servers-test: ## walk the development servers through their life: starts, crashes, interrupts, stops
	$(DEV)/test-servers
