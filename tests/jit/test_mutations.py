"""compile is never wrong: whatever changes between two calls, the result is that of the function as it is written.

Each program of `mutations.py` is run by our compiler, by PyTorch's, with the backend that changes nothing, and by none.
"""

import numpy as np
import pytest
import torch

import readtorch
from readtorch import _dynamo
from tests.jit.mutations import PROGRAMS


def plain(value):
    """Tensors as (dtype, NumPy array), nests of them likewise."""
    if isinstance(value, torch.Tensor | readtorch.Tensor):
        return str(value.dtype).removeprefix("torch."), np.array(value.detach().numpy())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def assert_same(mine, theirs):
    assert type(mine) is type(theirs), (mine, theirs)
    if isinstance(mine, list | tuple):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs):
            assert_same(a, b)
    elif isinstance(mine, np.ndarray):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)
    else:
        assert mine == theirs


def run(name, lib, made):
    """What the program returns if `lib` compiles its function, which is put into `made`; a list of one None: not compiled."""

    def compile(function):
        options = {"backend": "eager"} if lib is torch else {}
        made.append(function if made == [None] else lib.compile(function, **options))
        return made[-1]

    return plain(PROGRAMS[name](lib, compile))


def report(compiled):
    return _dynamo.report(compiled.forward if isinstance(compiled, readtorch.nn.Module) else compiled)


# What runs as graphs, from the first call to the last. The others run as they are written, and say why.
GRAPHS = set(
    """
    a_global_number a_global_changes_its_type a_global_zero_changes_its_sign a_global_becomes_a_tensor
    a_global_dictionary a_dictionary_in_a_dictionary an_element_of_a_global_list the_length_of_a_global_list
    a_global_hides_a_builtin a_global_function_is_another a_helper_reads_a_global a_closed_over_number
    a_closed_over_dictionary a_dictionary_asked_with_get the_order_of_a_dictionary a_closed_over_set
    a_closed_over_tensor_is_replaced a_closed_over_tensor_is_written_to a_closed_over_tensor_is_the_argument
    a_list_of_closed_over_tensors default_arguments a_default_list keyword_defaults the_code_of_a_helper
    a_dictionary_as_argument a_list_as_argument a_named_tuple_as_argument numbers_of_other_types dtypes_and_devices
    one_tensor_twice the_shape the_dtype_of_an_argument whether_an_argument_requires_grad random_numbers_of_the_library
    an_argument_that_is_written_to two_arguments_of_one_memory nothing_is_returned grad_mode grad_mode_that_is_asked_for
    the_default_dtype a_dictionary_of_a_module a_number_of_a_module a_field_of_a_modules_class a_method_of_a_module
    training_and_evaluation the_rate_of_a_dropout the_eps_of_a_norm a_part_that_is_replaced a_parameter_that_is_replaced
    a_bias_that_was_not_there a_hook_that_comes_later a_list_of_modules a_list_of_functions a_function_by_its_name
    a_global_tensor_that_is_written_to_inside the_shape_of_a_closed_over_tensor
    whether_a_closed_over_tensor_requires_grad a_parameter_is_frozen the_result_is_the_argument the_result_is_a_view
    many_arguments a_function_made_inside compiled_inside_compiled random_numbers_in_place a_forward_of_one_object
    a_subclass_of_a_layer a_property_of_a_module a_loop_over_parameters a_buffer_that_counts a_dictionary_of_modules
    a_batch_norm_in_training the_gradient_is_that_of_the_function results_written_into_arguments an_aliased_argument_in_views
    a_recurrent_layer plain_arithmetic
    the_library_as_an_argument_of_a_helper a_network a_generator_inside a_list_inside
    a_key_changes_its_type an_element_of_a_set_changes_its_type equal_sets_in_another_order equal_ranges_and_slices
    keyword_defaults_are_others fields_of_a_named_tuple_change_places tensors_as_keys
    whether_an_argument_is_a_closed_over_tensor the_shape_of_a_tensor_in_a_list whether_a_tensor_in_a_list_requires_grad
    the_sizes_of_parameters a_tuple_of_one_tensor a_method_of_a_class_between a_class_gets_another_base
    a_class_hides_a_parameter a_property_hides_a_field a_class_gets_a_call a_class_gets_a_length
    a_class_gets_getattribute a_forward_in_the_place_of_a_field parameters_in_another_order a_layer_gets_a_parameter
    a_function_of_the_library_is_another
    """.split()
)  # fmt: skip
# A hook becomes known, the layer puts its list of weights right, all reading of attributes changes: captured once, then given up.
GIVEN_UP_LATER = {"a_hook_that_comes_later", "a_recurrent_layer", "a_class_gets_getattribute"}
# PyTorch keeps what it has compiled here, on purpose or not, or refuses. The measure is the program without a compiler.
ONLY_AS_WRITTEN = set(
    """
    a_global_hides_a_builtin a_method_of_a_module a_hook_that_comes_later exceptions an_element_of_a_set_changes_its_type
    equal_sets_in_another_order a_method_of_a_class_between a_class_gets_another_base a_class_hides_a_parameter
    a_property_hides_a_field a_class_gets_a_call a_class_gets_a_length a_class_gets_getattribute
    """.split()
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_changes_is_noticed(name):
    made = []
    mine = run(name, readtorch, made)
    assert_same(mine, run(name, readtorch, [None]))
    if name not in ONLY_AS_WRITTEN:
        torch._dynamo.reset()
        assert_same(mine, run(name, torch, []))
    told = report(made[0])
    assert (told.graph_count > 0) == (name in GRAPHS), told.break_reasons
    assert bool(told.break_reasons) == (name not in GRAPHS or name in GIVEN_UP_LATER)


def test_how_many_are_compiled():
    assert len(PROGRAMS) >= 50 and GRAPHS <= set(PROGRAMS)
    assert len(GRAPHS) > len(PROGRAMS) / 2
