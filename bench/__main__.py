"""``python -m bench``; README.md explains the options and the figures."""

from bench.commands import main

if __name__ == "__main__":
    main()
