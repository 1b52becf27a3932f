"""The fuser's compiler: a group of pointwise nodes becomes one loop.

    lowerings.py        which operators can be fused, and the scalar function that each of them is
    loop_nest.py        what one group computes for one element: typed assignments
    llvm_codegen.py     the same as text for the CPU; cuda_codegen.py as a CUDA kernel
    cpu_functions.py    the scalar functions in a form that LLVM turns into vector instructions
    placement.py        how operands of any shape and strides are mapped to the loop; plans.py: what is done around a kernel
    kernel.py           one group at run time: guards, kernels, and what happens where none fits
    autodiff.py         its gradient, as another graph

In PyTorch: `torch/csrc/jit/tensorexpr`. Explained in the chapter "Inductor: loops, fusion, code".
"""
