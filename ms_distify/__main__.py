"""``python -m ms_distify`` and the console script."""

from .cli import main

if __name__ == "__main__":
    main()
