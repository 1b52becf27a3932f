"""Answers about modules, checkpoints and training."""

import contextlib
import copy
import importlib
import io
import math
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


def saved(state, **options):
    """What `torch.load` makes of a file with `state`."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, **options)


def stepped(optimizer_class, gradient=1.0, start=2.0, steps=1, **options):
    """Where a parameter is after some steps with one gradient."""
    w = nn.Parameter(torch.tensor([start]))
    optimizer = optimizer_class([w], **options)
    for _ in range(steps):
        w.grad = torch.tensor([gradient])
        optimizer.step()
    return w.item()


# -- modules ------------------------------------------------------------------------------------------


def test_why_is_my_list_of_layers_not_trained():
    net = nn.Module()
    net.layers = [nn.Linear(1, 1)]
    assert list(net.parameters()) == []
    net.layers = nn.ModuleList(net.layers)
    assert len(list(net.parameters())) == 2


def test_why_does_my_tensor_not_move_to_the_gpu_with_the_model():
    net = nn.Module()
    net.plain = torch.ones(1)
    net.register_buffer("buffer", torch.ones(1))
    net.to("meta")
    assert (net.plain.device.type, net.buffer.device.type) == ("cpu", "meta")


def test_what_is_the_difference_between_a_parameter_and_a_buffer():
    net = nn.Module()
    net.weight = nn.Parameter(torch.ones(1))
    net.register_buffer("kept", torch.ones(1))
    net.register_buffer("left_out", torch.ones(1), persistent=False)
    assert set(net.state_dict()) == {"weight", "kept"}
    assert [name for name, _ in net.named_parameters()] == ["weight"]
    net.double()
    assert net.weight.dtype == net.kept.dtype == net.left_out.dtype == torch.float64


def test_what_does_super_init_do_in_a_module():
    class Net(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Net()


def test_why_net_x_and_not_net_forward_x():
    net, called = nn.Linear(1, 1), []
    net.register_forward_hook(lambda module, args, output: called.append(output))
    net.forward(torch.ones(1, 1))
    assert called == []
    net(torch.ones(1, 1))
    assert len(called) == 1


def test_why_does_my_model_give_different_results_in_eval():
    net, x = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()), torch.randn(4, 2)
    assert not torch.allclose(net.eval()(x), net.train()(x))
    assert torch.equal(nn.Dropout().eval()(x), x)
    net = nn.BatchNorm1d(2)
    assert not torch.allclose(net.train()(x)[0], net(torch.cat([x[:1], x[1:] * 9]))[0]), "depends on its neighbours"
    assert torch.allclose(net.eval()(x)[0], net(torch.cat([x[:1], x[1:] * 9]))[0])


def test_should_i_use_nn_relu_or_f_relu():
    x = torch.randn(100)
    assert torch.equal(nn.ReLU()(x), F.relu(x))
    assert (F.dropout(torch.ones(1000)) == 0).any()
    assert not (F.dropout(torch.ones(1000), training=False) == 0).any()


def test_does_net_to_device_change_the_network():
    net, x = nn.Linear(1, 1), torch.ones(1)
    assert net.to(torch.float64) is net and net.weight.dtype == torch.float64
    assert x.to(torch.float64) is not x and x.dtype == torch.float32
    assert x.to(torch.float32) is x


def test_must_the_optimizer_be_made_after_net_to_device():
    net = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1)
    weight, before = net.weight, net.weight.item()
    net.to(torch.float64)
    assert net.weight is weight
    net(torch.ones(1, 1, dtype=torch.float64)).sum().backward()
    optimizer.step()
    assert net.weight.item() != before


def test_how_do_i_count_the_parameters_of_a_model():
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    net[2].weight = net[1].weight
    assert sum(p.numel() for p in net.parameters()) == (12 + 4) + (16 + 4) + 4


def test_how_do_two_layers_share_a_weight():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    net(torch.ones(1, 2)).sum().backward()
    assert net[1].weight.grad is net[0].weight.grad
    assert {"0.weight", "1.weight"} <= set(net.state_dict()) and len(list(net.parameters())) == 3


def test_what_is_the_difference_between_modulelist_and_sequential():
    x, layers = torch.ones(1, 1), [nn.Linear(1, 1), nn.ReLU()]
    assert torch.equal(nn.Sequential(*layers)(x), layers[1](layers[0](x)))
    with pytest.raises(NotImplementedError):
        nn.ModuleList(layers)(x)


def test_how_do_i_get_the_output_of_a_layer_in_the_middle():
    net, outputs = nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 1)), []
    handle = net[0].register_forward_hook(lambda module, args, output: outputs.append(output))
    net(torch.ones(1, 1))
    handle.remove()
    net(torch.ones(1, 1))
    assert [output.shape for output in outputs] == [(1, 2)]
    net[0].register_forward_hook(lambda module, args, output: torch.zeros(1, 2))
    assert torch.equal(net(torch.ones(1, 1)), net[1](torch.zeros(1, 2)))


def test_why_does_a_softmax_before_crossentropyloss_train_so_badly():
    certain, label = torch.tensor([[100.0, 0.0]]), torch.tensor([0])
    assert F.cross_entropy(certain, label) == 0
    assert torch.allclose(F.cross_entropy(certain, label), F.nll_loss(certain.log_softmax(1), label))
    best = F.cross_entropy(certain.softmax(1), label)
    assert math.isclose(best, math.log(1 + math.exp(-1)), rel_tol=1e-6) and 0.31 < best < 0.32


def test_what_does_crossentropyloss_want_as_target():
    loss, x = nn.CrossEntropyLoss(), torch.randn(2, 3)
    loss(x, torch.tensor([0, 2])), loss(x, x.softmax(1)), loss(torch.randn(2, 3, 4, 4), torch.zeros(2, 4, 4).long())
    with pytest.raises(RuntimeError):
        loss(x, torch.tensor([0.0, 2.0]))
    with pytest.raises(RuntimeError):
        loss(x, torch.tensor([0, 2], dtype=torch.int16))


def test_why_is_my_loss_nan_when_all_labels_are_ignored():
    x, labels = torch.randn(2, 3), torch.tensor([-100, -100])
    assert F.cross_entropy(x, labels).isnan()
    assert F.cross_entropy(x, labels, reduction="sum") == 0


def test_why_bcewithlogitsloss_and_not_a_sigmoid_and_bceloss():
    logit, target = torch.tensor([20.0]), torch.tensor([0.0])
    assert logit.sigmoid() == 1
    assert F.binary_cross_entropy(logit.sigmoid(), target) == 100
    assert math.isclose(F.binary_cross_entropy_with_logits(logit, target), 20, rel_tol=1e-6)


def test_how_are_the_weights_of_nn_linear_initialized():
    torch.manual_seed(0)
    layer = nn.Linear(100, 50)
    assert max(layer.weight.abs().max(), layer.bias.abs().max()) <= 1 / math.sqrt(100)
    torch.manual_seed(0)
    assert torch.equal(layer.weight, nn.init.kaiming_uniform_(torch.empty(50, 100), a=math.sqrt(5)))
    torch.manual_seed(0)
    assert torch.allclose(layer.weight, torch.empty(50, 100).uniform_(-0.1, 0.1))


def test_why_does_adding_a_layer_change_the_weights_of_the_others():
    def last(*layers):
        torch.manual_seed(0)
        return nn.Sequential(*(make() for make in layers))[-1].weight

    linear = lambda: nn.Linear(2, 2)  # noqa: E731
    assert torch.equal(last(linear), last(nn.ReLU, linear)) and not torch.equal(last(linear), last(linear, linear))


def test_is_manual_seed_enough_to_repeat_a_training():
    def trained():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 8), nn.Dropout(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.randn(4, 2)).sum().backward()
            optimizer.step()
        return net[0].weight

    assert torch.equal(trained(), trained())


def test_does_a_convolution_flip_its_kernel():
    x, kernel = torch.arange(5.0).view(1, 1, 5), torch.tensor([[[1.0, 0.0, 0.0]]])
    assert F.conv1d(x, kernel).flatten().tolist() == [0, 1, 2]


def test_how_large_is_the_output_of_a_convolution():
    n, kernel, stride, padding, dilation = 17, 3, 2, 1, 2
    layer = nn.Conv1d(1, 1, kernel, stride, padding, dilation)
    assert layer(torch.ones(1, 1, n)).shape[-1] == (n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    assert nn.Conv1d(1, 1, 4, padding="same")(torch.ones(1, 1, n)).shape[-1] == n
    with pytest.raises(ValueError, match="padding='same' is not supported for strided convolutions"):
        nn.Conv1d(1, 1, 4, stride=2, padding="same")


def test_what_do_output_and_h_n_of_an_rnn_hold():
    output, h_n = nn.RNN(2, 3, num_layers=2, batch_first=True)(torch.randn(4, 5, 2))
    assert output.shape == (4, 5, 3) and h_n.shape == (2, 4, 3)
    assert torch.equal(output[:, -1], h_n[-1])


def test_does_true_in_an_attention_mask_mean_look_or_do_not_look():
    x, mask = torch.randn(1, 2, 4), torch.tensor([[True, False], [True, False]])
    assert torch.allclose(F.scaled_dot_product_attention(x, x, x, attn_mask=mask), x[:, :1].expand(1, 2, 4))
    attention = nn.MultiheadAttention(4, 1, batch_first=True)
    _, weights = attention(x, x, x, attn_mask=mask)
    _, padded = attention(x, x, x, key_padding_mask=mask[:1])
    assert weights[0, :, 0].tolist() == padded[0, :, 0].tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore:Flash attention kernel not used")
def test_which_kernel_does_scaled_dot_product_attention_use():
    x = torch.randn(1, 2, 8, 4)
    assert [torch._fused_sdp_choice(x, x, x), torch._fused_sdp_choice(x[0], x[0], x[0])] == [1, 0]
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION), pytest.warns(UserWarning, match="4 dimens"):
        with pytest.raises(RuntimeError, match="No available kernel"):
            F.scaled_dot_product_attention(x[0], x[0], x[0])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
def test_why_does_a_transformer_layer_give_other_numbers_under_no_grad():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1).eval()
    x, padding = torch.randn(1, 4, 8), torch.tensor([[False, False, False, True]])
    slow = encoder(x, src_key_padding_mask=padding)
    with torch.no_grad():
        fast = encoder(x, src_key_padding_mask=padding)
    assert torch.allclose(fast[:, :3], slow[:, :3], atol=1e-5)
    assert not fast[:, 3].any() and slow[:, 3].any()


def test_why_does_dropout_not_change_the_mean():
    x = torch.ones(10_000)
    assert set(F.dropout(x, 0.75).unique().tolist()) == {0, 4}
    assert abs(F.dropout(x, 0.75).mean() - 1) < 0.1


def test_what_does_padding_idx_of_an_embedding_do():
    layer = nn.Embedding(3, 2, padding_idx=1)
    layer(torch.tensor([0, 1])).sum().backward()
    assert layer.weight[1].tolist() == layer.weight.grad[1].tolist() == [0, 0] and layer.weight.grad[0].tolist() == [
        1,
        1,
    ]


def test_what_is_momentum_of_a_batch_norm():
    layer, x = nn.BatchNorm1d(1), torch.randn(8, 1) + 5
    layer(x)
    assert torch.allclose(layer.running_mean, 0.9 * torch.zeros(1) + 0.1 * x.mean(0))
    assert math.isclose(stepped(torch.optim.SGD, steps=2, lr=1, momentum=0.9), 2 - 1 - 1.9, rel_tol=1e-6)


def test_what_does_expected_more_than_1_value_per_channel_when_training_mean():
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        nn.BatchNorm1d(2)(torch.ones(1, 2))
    nn.BatchNorm1d(2).eval()(torch.ones(1, 2))


def test_does_layernorm_differ_between_train_and_eval():
    for layer in (nn.LayerNorm(4), nn.GroupNorm(2, 4), nn.RMSNorm(4)):
        x = torch.randn(3, 4)
        assert torch.equal(layer.train()(x), layer.eval()(x)) and not list(layer.buffers())


# -- saving and loading -------------------------------------------------------------------------------


def test_is_state_dict_a_copy():
    net = nn.Linear(1, 1)
    state, kept = net.state_dict(), copy.deepcopy(net.state_dict())
    with torch.no_grad():
        net.weight.add_(1)
    assert torch.equal(state["weight"], net.weight) and not torch.equal(kept["weight"], net.weight)


def test_why_do_all_keys_begin_with_module_or_orig_mod():
    net = nn.Linear(1, 1)
    wrapped = nn.DataParallel(net)
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "weight", "bias"'):
        net.load_state_dict(wrapped.state_dict())
    net.load_state_dict(wrapped.module.state_dict())
    compiled = torch.compile(net)
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    net.load_state_dict(compiled._orig_mod.state_dict())
    net.compile()
    assert list(net.state_dict()) == ["weight", "bias"]


def test_what_does_strict_false_ignore():
    net = nn.Linear(1, 1)
    missing, unexpected = net.load_state_dict({"weight": torch.ones(1, 1), "more": torch.ones(1)}, strict=False)
    assert (missing, unexpected) == (["bias"], ["more"])
    with pytest.raises(RuntimeError, match="size mismatch"):
        net.load_state_dict({"weight": torch.ones(2, 1)}, strict=False)


class CallsWhenLoaded:
    def __reduce__(self):
        return (math.sqrt, (4.0,))


def test_is_torch_load_safe():
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        saved(CallsWhenLoaded())
    assert saved(CallsWhenLoaded(), weights_only=False) == 2, "a function was called"


def test_why_does_torch_load_refuse_my_file_since_2_6():
    net = nn.ReLU()
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        saved(net)
    assert isinstance(saved(net, weights_only=False), nn.ReLU)
    with torch.serialization.safe_globals([nn.ReLU, set]):
        assert isinstance(saved(net), nn.ReLU)


def test_should_i_save_the_model_or_its_state_dict():
    file = io.BytesIO()
    torch.save(nn.ReLU(), file)
    assert b"torch.nn.modules.activation" in file.getvalue()
    assert set(saved(nn.Linear(1, 1).state_dict())) == {"weight", "bias"}


def test_what_does_map_location_do():
    assert saved(torch.ones(2), map_location="meta").is_meta
    assert saved(torch.ones(2)).device.type == "cpu"


def test_what_must_a_checkpoint_hold_to_resume_a_training():
    def after_two(forget):
        w = nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
        for _ in range(2):
            w.grad = torch.ones(1)
            optimizer.step()
            if forget:
                optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
            else:
                state, optimizer = optimizer.state_dict(), torch.optim.SGD([w], lr=0.1, momentum=0.9)
                optimizer.load_state_dict(state)
        return round(w.item(), 6)

    assert (after_two(forget=False), after_two(forget=True)) == (0.71, 0.8)


def test_why_did_loading_the_optimizer_undo_my_new_learning_rate():
    make = lambda lr: torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=lr)  # noqa: E731
    optimizer = make(0.01)
    optimizer.load_state_dict(make(0.1).state_dict())
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_what_does_load_state_dict_assign_true_do():
    with torch.device("meta"):
        net = nn.Linear(2, 2)
    net.load_state_dict(nn.Linear(2, 2).double().state_dict(), assign=True)
    assert net.weight.dtype == torch.float64 and net.weight.device.type == "cpu"
    copied = nn.Linear(2, 2)
    copied.load_state_dict(nn.Linear(2, 2).double().state_dict())
    assert copied.weight.dtype == torch.float32


# -- training -----------------------------------------------------------------------------------------


def test_where_does_zero_grad_belong():
    def trained(first):
        torch.manual_seed(0)
        net = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            loss = net(torch.ones(1, 2)).square().sum()
            if first:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if not first:
                optimizer.zero_grad()
        return net.weight

    assert torch.equal(trained(True), trained(False))


def test_how_do_i_train_with_a_larger_batch_than_fits_into_memory():
    net, x = nn.Linear(3, 1), torch.randn(8, 3)
    net(x).square().mean().backward()
    whole = net.weight.grad.clone()
    net.zero_grad()
    for part in x.split(2):
        (net(part).square().mean() / 4).backward()
    assert torch.allclose(net.weight.grad, whole)


def test_what_is_the_difference_between_adam_and_adamw():
    options = dict(lr=0.1, weight_decay=0.5)
    assert math.isclose(stepped(torch.optim.AdamW, **options), 2 * (1 - 0.1 * 0.5) - 0.1, rel_tol=1e-5)
    assert math.isclose(stepped(torch.optim.Adam, **options), 2 - 0.1, rel_tol=1e-5), "the decay is divided out"


def test_how_much_memory_does_adam_take():
    w = nn.Parameter(torch.ones(100))
    optimizer = torch.optim.Adam([w])
    w.grad = torch.ones(100)
    optimizer.step()
    state = [value for value in optimizer.state[w].values() if value.shape == w.shape]
    assert sum(value.nbytes for value in state) == 8 * 100
    assert w.nbytes + w.grad.nbytes + sum(value.nbytes for value in state) == 16 * 100


def test_what_do_foreach_and_fused_change():
    results = {stepped(torch.optim.AdamW, steps=5, **{kind: True}) for kind in ("foreach", "fused")}
    assert all(math.isclose(result, stepped(torch.optim.AdamW, steps=5), rel_tol=1e-6) for result in results)


class Names(TorchDispatchMode):
    """The operators that run."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.__name__.split(".")[0])
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("optimizer_class", [torch.optim.SGD, torch.optim.Adagrad, torch.optim.Adam, torch.optim.AdamW])
def test_is_fused_true_ever_the_default(optimizer_class, monkeypatch):
    with Names() as on_the_cpu:
        stepped(optimizer_class)
    assert not any(name.startswith(("_fused", "_foreach")) for name in on_the_cpu.names)
    module = importlib.import_module("torch.optim.optimizer")  # `torch.optim` has deleted the name
    monkeypatch.setattr(module, "_get_foreach_kernels_supported_devices", lambda: ["cpu"])
    with Names() as on_such_a_device:
        stepped(optimizer_class)
    kinds = {name.split("_")[1] for name in on_such_a_device.names if name.startswith("_f")}
    assert kinds == {"foreach"}


def test_why_does_a_weight_move_although_its_gradient_is_zero():
    for options in ({"momentum": 0.9}, {"weight_decay": 0.1}, {}):
        w = nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([w], lr=0.1, **options)
        places = []
        for gradient in (torch.ones(1), torch.zeros(1), None):
            w.grad = gradient
            optimizer.step()
            places.append(w.item())
        assert (places[1] != places[0]) is bool(options) and places[2] == places[1]


def test_why_is_the_optimizer_s_step_a_float32_tensor():
    w = nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
    optimizer = torch.optim.Adam([w])
    w.grad = torch.ones_like(w)
    optimizer.step()
    step = optimizer.state[w]["step"]
    assert step.dtype == torch.float32 and optimizer.state[w]["exp_avg"].dtype == torch.bfloat16
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step()
    assert optimizer.state[w]["step"].dtype == torch.float32 and step.item() == 2
    full = torch.tensor(256.0, dtype=torch.bfloat16)
    assert full + 1 == full


def test_how_do_i_train_without_keeping_all_gradients_at_once():
    torch.manual_seed(0)
    nets = [nn.Sequential(*[nn.Linear(4, 4) for _ in range(5)])]
    nets.append(copy.deepcopy(nets[0]))
    usual = torch.optim.AdamW(nets[0].parameters())
    own = {p: torch.optim.AdamW([p]) for p in nets[1].parameters()}
    alive = []

    def hook(p):
        alive.append(sum(q.grad is not None for q in nets[1].parameters()))
        own[p].step()
        own[p].zero_grad()

    for p in own:
        p.register_post_accumulate_grad_hook(hook)
    x = torch.randn(3, 4)
    for _ in range(3):
        for net in nets:
            net(x).square().sum().backward()
        usual.step()
        usual.zero_grad()
    assert all(torch.equal(p, q) for p, q in zip(*map(nn.Module.parameters, nets), strict=True))
    assert set(alive) == {1}


def test_how_does_gradient_clipping_work():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    a.grad, b.grad = torch.tensor([3.0]), torch.tensor([4.0])
    assert nn.utils.clip_grad_norm_([a, b], 1.0) == 5
    assert torch.allclose(torch.cat([a.grad, b.grad]), torch.tensor([0.6, 0.8]), rtol=1e-4)
    nn.utils.clip_grad_norm_([a, b], 10.0)
    assert torch.allclose(a.grad, torch.tensor([0.6]), rtol=1e-4)


def test_why_does_my_loss_become_nan():
    assert torch.finfo(torch.float16).max == 65504 and torch.tensor(70_000.0).half().isinf()
    w = torch.zeros(1, requires_grad=True)
    with pytest.warns(UserWarning), torch.autograd.detect_anomaly():
        with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values"):
            (w.sqrt() * 0).backward()


def test_which_comes_first_optimizer_step_or_scheduler_step():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.5, "no step was made with 1"


def test_is_scheduler_step_called_per_epoch_or_per_batch():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1)
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    rates = []
    for _ in range(4):
        rates += scheduler.get_last_lr()
        scheduler.step()
    assert rates == [1, 1, 0.5, 0.5]
    with pytest.raises(TypeError):
        torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer).step()


@pytest.mark.filterwarnings("ignore:To get the last learning rate")
def test_how_do_i_read_the_current_learning_rate():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1)
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    scheduler.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [optimizer.param_groups[0]["lr"]] == [0.5]
    assert scheduler.get_lr() == [0.25]


def test_how_do_i_give_layers_different_learning_rates():
    body, head, later = (nn.Linear(1, 1) for _ in range(3))
    groups = [{"params": body.parameters()}, {"params": head.parameters(), "lr": 0.1}]
    optimizer = torch.optim.SGD(groups, lr=0.01)
    optimizer.add_param_group({"params": later.parameters(), "lr": 0.2})
    assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.1, 0.2]


def test_why_does_lbfgs_need_a_closure():
    w, calls = nn.Parameter(torch.tensor([5.0])), []
    optimizer = torch.optim.LBFGS([w])

    def closure():
        calls.append(1)
        optimizer.zero_grad()
        loss = (w**2 + w.exp()).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert len(calls) > 1
    with pytest.raises(TypeError):
        optimizer.step()


def test_what_does_averaging_the_weights_swa_ema_need_besides_the_average():
    net, x = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)), torch.randn(8, 1)
    averaged = torch.optim.swa_utils.AveragedModel(net)
    averaged.update_parameters(net)
    mean = averaged.module[1].running_mean.clone()
    torch.optim.swa_utils.update_bn([x], averaged)
    assert not torch.equal(averaged.module[1].running_mean, mean)
    assert torch.allclose(averaged.module[1].running_mean, averaged.module[0](x).mean(0))


def test_what_is_the_difference_between_float16_and_bfloat16():
    half, brain, single = (torch.finfo(dtype) for dtype in (torch.float16, torch.bfloat16, torch.float32))
    assert (half.max, half.eps, brain.eps) == (65504, 2**-10, 2**-7)
    assert brain.max > 0.99 * single.max and brain.smallest_normal == single.smallest_normal


def test_what_does_gradscaler_do():
    assert torch.tensor(1e-8).half() == 0 and torch.tensor(1e-8 * 2**16).half() != 0
    w = nn.Parameter(torch.ones(1))
    optimizer, scaler = torch.optim.SGD([w], lr=0.1), torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(w.sum()).backward()
    assert w.grad == 4
    scaler.step(optimizer)
    scaler.update()
    assert math.isclose(w.item(), 0.9, rel_tol=1e-6)
    w.grad = torch.tensor([math.inf])
    scaler.scale(w.sum() * 0)
    scaler.step(optimizer)
    scaler.update()
    assert math.isclose(w.item(), 0.9, rel_tol=1e-6) and scaler.get_scale() == 2


def test_what_does_autocast_convert():
    layer, x = nn.Linear(2, 2), torch.ones(1, 2)
    with torch.autocast("cpu"):
        y = layer(x)
        loss = F.mse_loss(y, torch.zeros(1, 2, dtype=y.dtype))
    assert y.dtype == torch.bfloat16 and layer.weight.dtype == loss.dtype == torch.float32


def test_does_mixed_precision_halve_the_memory_of_training():
    net = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(net.parameters())
    with torch.autocast("cpu"):
        out = net(torch.ones(1, 4))
    assert out.grad_fn._saved_mat1.dtype == torch.bfloat16
    out.sum().backward()
    optimizer.step()
    kept = [
        t for p in net.parameters() for t in (p, p.grad, *(optimizer.state[p][k] for k in ("exp_avg", "exp_avg_sq")))
    ]
    assert sum(t.nbytes for t in kept) == 16 * 20


def test_do_i_need_a_gradscaler_with_bfloat16():
    small = torch.tensor(1e-12)
    assert small.bfloat16() != 0 and small.half() == 0 and torch.tensor(6e-8).half() != 0


def test_why_do_bfloat16_weights_stop_learning():
    for update, moves in ((1 / 513, False), (1 / 100, True)):
        weight, wide = torch.ones((), dtype=torch.bfloat16), torch.ones(())
        for _ in range(100):
            weight += update
            wide += update
        assert (weight != 1) == moves and wide > 1.19


def test_where_does_gradient_clipping_go_with_a_gradscaler():
    for unscale, expected in ((True, 1.0), (False, 1 / 8)):
        w = nn.Parameter(torch.zeros(()))
        optimizer, scaler = torch.optim.SGD([w], lr=1.0), torch.amp.GradScaler("cpu", init_scale=8.0)
        scaler.scale(w * 5).backward()
        if unscale:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_([w], 1.0)
        scaler.step(optimizer)
        assert math.isclose(-w.item(), expected, rel_tol=1e-5)


def test_why_does_my_loss_scale_fall_towards_zero():
    w = nn.Parameter(torch.full((1, 1), 300.0))
    optimizer, scaler = torch.optim.SGD([w], lr=1.0), torch.amp.GradScaler("cpu")
    for _ in range(30):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = (w @ w).float().square()
        scaler.scale(loss.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    assert w.item() == 300 and scaler.get_scale() == 2.0 ** (16 - 30)


def test_why_did_my_weights_become_nan_when_the_loss_scale_reached_0():
    w = torch.ones(2, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([w], lr=0.1), torch.amp.GradScaler("cpu")
    for _ in range(166):
        assert scaler.get_scale() > 0 and w.tolist() == [1, 1]
        scaler.scale((w * math.inf).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    assert scaler.get_scale() == 0
    scaler.scale(w.sum()).backward()
    assert w.grad.isfinite().all()
    scaler.step(optimizer)
    assert w.isnan().all()


def test_why_can_a_gradscaler_not_unscale_float16_gradients():
    w = nn.Parameter(torch.ones(2, dtype=torch.float16))
    optimizer, scaler = torch.optim.SGD([w], lr=1.0), torch.amp.GradScaler("cpu")
    scaler.scale(w.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients."):
        scaler.step(optimizer)


def test_why_does_my_loss_stand_still_under_autocast_though_the_weights_change():
    def losses(around, **options):
        w, found = torch.ones(1, 1, requires_grad=True), []
        optimizer = torch.optim.SGD([w], lr=0.1)
        with around:
            for _ in range(3):
                with torch.autocast("cpu", **options):
                    loss = (torch.ones(1, 1) @ w).float().square().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
        assert w.item() < 1
        return found

    for around in (torch.autocast("cpu"), torch.autocast("cpu", enabled=False)):
        assert losses(around) == [1, 1, 1]
    each = losses(contextlib.nullcontext())
    assert each[0] > each[1] > each[2]
    assert losses(torch.autocast("cpu"), cache_enabled=False) == each


def test_should_backward_run_within_autocast():
    x = torch.ones(2, 2, requires_grad=True)
    seen = []
    with torch.autocast("cpu"):
        y = x @ x
    y.register_hook(lambda g: seen.append((g.dtype, torch.is_autocast_enabled("cpu"))))
    y.float().sum().backward()
    with torch.autocast("cpu"):
        z = (x @ x).float()
        z.register_hook(lambda g: seen.append((g.dtype, torch.is_autocast_enabled("cpu"))))
        z.sum().backward()
    assert seen == [(torch.bfloat16, False), (torch.float32, True)]
