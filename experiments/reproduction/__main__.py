"""`python -m reproduction`: see `reproduction.run`. (Apart from it: processes do not find what lives in `__main__`.)"""

from reproduction.run import main

if __name__ == "__main__":
    main()
