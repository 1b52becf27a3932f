"""Other ways to reduce a bucket of gradients. In PyTorch:
`torch/distributed/algorithms/ddp_comm_hooks/__init__.py`.
"""
