.PHONY: lab
# Two systemd hosts with llama.cpp services and a caller, kept up until Ctrl-C. Needs root on Debian.
lab:
	$(PYTHON) -m tests.lab.harness up
