"""`python -m layerwright`."""

from . import main

main()
