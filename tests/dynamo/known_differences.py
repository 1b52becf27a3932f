"""Programs of the mutation table whose graphs and recompilations are not as many as PyTorch's, or which pass with fullgraph=True
there and not here: each with its reason. Those in which PyTorch's result is not that of the program as it is written differ for
that reason alone, and are not listed.

A test holds the list to what differs.
"""

DIFFERENCES = {
    "generator_returned": "a generator that outlives the call is not made anew: the function runs as it is written",
    "raise_through_inlined": "`super().__init__()` of an exception breaks PyTorch's graph; ours follows it",
    "string_formatting": "a symbol as text: PyTorch leaves the function to Python, ours guards the number by its value",
    "mask_indexing": "a size that elements decide has a symbol in PyTorch, with fullgraph=True; here the graph breaks",
    "numpy_argument": "PyTorch treats arrays of NumPy as tensors; here what is done with one breaks the graph",
    "callback_from_c": "functions that C calls (a key of `sort`) are compiled by PyTorch's frame hook; here they run as they are written",
    "custom_getattribute": "an object whose class has a `__getattribute__` of its own breaks the graph",
    "tensors_that_were_seen": "a tensor in a set is guarded by its identity; PyTorch guards which of them are one",
    "walrus_in_conditions": "an empty cell breaks PyTorch's graph",
    "match_statements": "a class pattern that takes its subject as it is (`int(k)`): PyTorch leaves the call to Python",
    "a_subclass_of_dict": "an object of a class that inherits from `dict` breaks the graph",
    "counters_and_chains": "`collections.Counter` breaks the graph",
    "descriptor_state": "PyTorch has no graph where the `__dict__` of an object is asked by a descriptor; here it is followed",
    "module_getattr_hook": "a number in a module of Python stays a constant; PyTorch makes a symbol of it when it has changed",
    "inference_tensors": "one graph serves tensors with and without a count of versions; PyTorch compiles anew",
    "yield_from_and_return": "`yield from` a generator that returns something leaves no graph in PyTorch; here it is followed",
    "steps_of_other_optimizers": "`Optimizer.step` asks PyTorch's compiler to break the graph; here the step is captured whole",
    "cached_function": "PyTorch follows the function behind `lru_cache`; here Python asks the cache, which may hold another result",
    "single_dispatch": "PyTorch goes into `functools.singledispatch` and its graph breaks there; here its call breaks the graph",
    "cached_property_once": "PyTorch cannot follow the lock of `functools.cached_property`; here the property is known",
    "callable_object_with_a_call_replaced": "an attribute `__call__` of the object itself breaks PyTorch's graph; here the class is asked",
    "error_with_notes_and_groups": "an error whose text has a symbol: PyTorch leaves the function to Python, ours guards the number by its value",
    "formats_of_numbers": "a symbol as text: PyTorch leaves the function to Python, ours guards the number by its value",
    "hooks_on_tensors_inside": "`register_hook` of a result breaks the graph; PyTorch captures it",
    "momentum_of_a_batchnorm_changed": "after `item` has broken the graph, PyTorch leaves the module's forward to Python; here the rest is captured",
    "generator_passed_along": "a generator of random numbers breaks both graphs; PyTorch has another one for `generator=None`",
    "subclass_of_tensor_with_an_attribute": "a tensor of a subclass breaks the graph",
    "error_leaves_what_was_done": "PyTorch leaves a function that ends by an error to Python from then on; here each error has its capture",
}
