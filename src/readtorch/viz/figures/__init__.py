"""The figures that are declared with inputs: one file each, named as the figure. See ``readtorch.viz.figure_kit``."""
