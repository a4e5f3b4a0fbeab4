# What a newcomer types. `make up` and `make test` set up what they need by themselves.

PYTHON ?= python3
VENV := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup up down clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install the pinned packages and the CDK CLI, where they are not there yet
	@$(PYTHON) local/install.py

up: setup ## deploy to a cloud on this machine, load the sample, serve the page, until Ctrl-C
	@$(VENV)/python -m local up

down: setup ## stop it from another terminal
	@$(VENV)/python -m local down

clean: setup ## stop it, and remove its state and all that was built
	@$(VENV)/python -m local clean
	@rm -rf cdk.out
