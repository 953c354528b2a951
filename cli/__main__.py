"""``python -m mc2proof``: the same as the command."""

from mc2proof.command import main

if __name__ == "__main__":
    main()
