"""`python -m lasca` is the command line."""

from lasca.cli import main

main()
