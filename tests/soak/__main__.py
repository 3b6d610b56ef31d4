"""`python -m tests.soak`: the processes that it starts import the checks by the name of their own module."""

from tests.soak.checks import main

if __name__ == "__main__":
    main()
