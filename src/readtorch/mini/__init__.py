"""The program that grows through the book: what its cells define, one module a topic.

NumPy and the standard library are all that it needs: a copy of this folder, under any name, is a package of its own.
`tools/mini.py` writes the modules from the chapters; PyTorch has no such file.
"""
