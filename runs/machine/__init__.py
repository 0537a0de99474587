"""This machine: git, tmux, processes, files. It carries out and reports, and decides nothing."""
