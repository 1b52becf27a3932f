"""How sharp the tests are: bugs are planted at random, one at a time, and the tests of the room must notice. See __main__.py."""
