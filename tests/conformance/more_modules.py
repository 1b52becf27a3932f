"""Inputs for the classes of torch.nn that module_db lacks, in its own form: ModuleInfos.

INPUTS: name -> a function that makes (construction, forward) pairs; x(*shape) makes a tensor that requires
grad.
"""

import functools

import torch
from torch import nn
from torch.nn import functional as F
from torch.testing._internal.common_modules import FunctionInput as Given
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput


def labels(classes, *shape):
    return torch.randint(0, classes, shape)


def dropouts(*shapes):
    settings = ((), (0.2,), (0.0,), (1.0,), (0.3, True))
    return lambda x: [(Given(*given), Given(x(*shape))) for shape in shapes for given in settings]


def lazy_norm(*shapes):
    return lambda x: [
        (Given(**named), Given(x(*shape)))
        for shape in shapes
        for named in ({}, {"affine": True, "track_running_stats": True}, {"momentum": 0.3})
    ]


def unpooling(pool, *size):
    def inputs(x):
        pairs = []
        for named in ({}, {"stride": 1}):
            pooled, indices = pool(x(2, 3, *size).detach(), 2, return_indices=True, **named)
            pairs.append((Given(2, **named), Given(pooled.requires_grad_(), indices)))
        pooled, indices = pool(x(1, 2, *size).detach(), 2, return_indices=True)
        larger = [n + 1 for n in size]
        return [*pairs, (Given(2), Given(pooled.requires_grad_(), indices, output_size=larger))]

    return inputs


def triplets(**named):
    settings = ({}, {"margin": 0.3, "swap": True}, {"reduction": "none"}, {"reduction": "sum"})
    return lambda x: [(Given(**given, **named), Given(x(4, 5), x(4, 5), x(4, 5))) for given in settings]


def adaptive_log_softmax(x):
    return [
        (Given(8, 20, [5, 10], **named), Given(x(6, 8), labels(20, 6)))
        for named in ({}, {"div_value": 2.0}, {"head_bias": True})
    ]


def embedding_bag(x):
    flat, offsets = labels(10, 7), torch.tensor([0, 3, 3])
    modes = [(Given(10, 3, mode=mode), Given(flat, offsets)) for mode in ("sum", "mean", "max")]
    return [
        *modes,
        (Given(10, 3), Given(labels(10, 2, 4))),
        (Given(10, 3, padding_idx=2), Given(flat, offsets)),
        (Given(10, 3, mode="sum", include_last_offset=True), Given(flat, torch.tensor([0, 3, 7]))),
        (Given(10, 3, mode="sum"), Given(flat, offsets, per_sample_weights=x(7))),
        (Given(10, 3, max_norm=1.0), Given(flat, offsets)),
    ]


def fold(x):
    return [
        (Given((4, 5), 2), Given(x(2, 12, 12))),
        (Given((4, 5), (2, 2), padding=1, stride=2), Given(x(2, 8, 9))),
        (Given((4, 5), 2, dilation=2), Given(x(8, 6))),
    ]


def upsampling(x):
    return [
        (Given(scale_factor=2), Given(x(1, 2, 4))),
        (Given(size=(5, 3)), Given(x(1, 2, 3, 4))),
        (Given(scale_factor=1.5, mode="bilinear"), Given(x(1, 2, 4, 4))),
        (Given(size=7, mode="linear", align_corners=True), Given(x(1, 2, 4))),
        (Given(scale_factor=2, mode="bicubic", align_corners=False), Given(x(1, 2, 4, 4))),
        (Given(scale_factor=(1, 2, 2), mode="trilinear"), Given(x(1, 2, 2, 3, 3))),
        (Given(scale_factor=0.6, mode="nearest-exact", recompute_scale_factor=True), Given(x(1, 2, 5, 5))),
    ]


def sizes_or_factors(x):
    return [(Given(size=(5, 7)), Given(x(1, 2, 3, 4))), (Given(scale_factor=2), Given(x(1, 2, 3, 4)))]


def transformer_decoder(x):
    layer = functools.partial(nn.TransformerDecoderLayer, 4, 2, 8, 0.0, dtype=x(1).dtype)
    return [
        (Given(layer(), 2), Given(x(3, 2, 4), x(5, 2, 4))),
        (Given(layer(batch_first=True), 1, norm=nn.LayerNorm(4, dtype=x(1).dtype)), Given(x(2, 3, 4), x(2, 5, 4))),
        (
            Given(layer(), 1),
            Given(
                x(3, 2, 4), x(5, 2, 4), tgt_is_causal=True, tgt_mask=nn.Transformer.generate_square_subsequent_mask(3)
            ),
        ),
    ]


def containers(x):
    layers = [nn.Linear(3, 4), nn.ReLU()]
    return [(Given(*layers), Given(x(2, 3))), (Given(), Given(x(2)))]


INPUTS = {
    "AdaptiveLogSoftmaxWithLoss": adaptive_log_softmax,
    "AlphaDropout": dropouts((4, 5)),
    "ChannelShuffle": lambda x: [(Given(g), Given(x(2, 6, 3, 2))) for g in (1, 2, 3)],
    "CosineSimilarity": lambda x: [(Given(), Given(x(3, 4, 2), x(3, 4, 2))), (Given(dim=0), Given(x(3, 4), x(4)))],
    "CrossMapLRN2d": lambda x: [(Given(3), Given(x(2, 5, 3, 3))), (Given(2, 0.1, 0.5, 2), Given(x(1, 4, 2, 2)))],
    "Dropout": dropouts((4, 5), ()),
    "Dropout1d": dropouts((3, 4, 5), (4, 5)),
    "Dropout2d": dropouts((2, 3, 4, 5)),
    "Dropout3d": dropouts((2, 3, 2, 2, 2), (3, 2, 2, 2)),
    "EmbeddingBag": embedding_bag,
    "FeatureAlphaDropout": dropouts((3, 4, 2, 2)),
    "Flatten": lambda x: [(Given(*dims), Given(x(2, 3, 4))) for dims in ((), (0, 1), (-2,))],
    "Fold": fold,
    "Hardsigmoid": lambda x: [(Given(), Given(x(3, 4))), (Given(inplace=True), Given(x(5)))],
    "Identity": lambda x: [(Given(), Given(x(2, 3))), (Given(3, size=4), Given(x(2)))],
    "LazyBatchNorm1d": lazy_norm((3, 4), (3, 4, 5)),
    "LazyBatchNorm2d": lazy_norm((2, 3, 4, 5)),
    "LazyBatchNorm3d": lazy_norm((2, 3, 2, 3, 2)),
    "LazyInstanceNorm1d": lazy_norm((3, 4, 5), (4, 5)),
    "LazyInstanceNorm2d": lazy_norm((2, 3, 4, 5)),
    "LazyInstanceNorm3d": lazy_norm((2, 3, 2, 3, 2)),
    "LazyLinear": lambda x: [(Given(3), Given(x(2, 4))), (Given(3, bias=False), Given(x(4)))],
    "MaxUnpool1d": unpooling(F.max_pool1d, 6),
    "MaxUnpool2d": unpooling(F.max_pool2d, 6, 4),
    "MaxUnpool3d": unpooling(F.max_pool3d, 4, 4, 6),
    "ModuleDict": lambda x: [(Given({"a": nn.Linear(2, 3), "b": nn.ReLU()}), Given(x(2)))],
    "ModuleList": lambda x: [(Given([nn.Linear(2, 3), nn.ReLU()]), Given(x(2)))],
    "PairwiseDistance": lambda x: [
        (Given(**named), Given(x(3, 4), x(3, 4)))
        for named in ({}, {"p": 1.0}, {"keepdim": True}, {"p": 3.0, "eps": 0.1})
    ],
    "ParameterDict": lambda x: [(Given({"a": nn.Parameter(x(2)), "b": nn.Parameter(x(2, 2))}), Given(x(2)))],
    "ParameterList": lambda x: [(Given([nn.Parameter(x(2)), nn.Parameter(x(2, 2))]), Given(x(2)))],
    "PixelShuffle": lambda x: [(Given(2), Given(x(1, 8, 2, 3))), (Given(3), Given(x(9, 2, 2)))],
    "PixelUnshuffle": lambda x: [(Given(2), Given(x(1, 2, 4, 6))), (Given(3), Given(x(2, 3, 3)))],
    "RReLU": lambda x: [(Given(*given), Given(x(4, 5))) for given in ((), (0.1, 0.9), (0.1, 0.5, True))],
    "Sequential": containers,
    "SyncBatchNorm": lambda x: [(Given(3), Given(x(4, 3, 2)))],
    "TransformerDecoder": transformer_decoder,
    "TripletMarginLoss": triplets(),
    "TripletMarginWithDistanceLoss": triplets(distance_function=nn.PairwiseDistance()),
    "Unflatten": lambda x: [(Given(1, (2, 3)), Given(x(2, 6, 4))), (Given(-1, torch.Size([2, -1])), Given(x(2, 6)))],
    "Unfold": lambda x: [
        (Given(2), Given(x(2, 3, 4, 5))),
        (Given((2, 3), 2, 1, (1, 2)), Given(x(1, 2, 6, 7))),
        (Given(2), Given(x(3, 4, 5))),
    ],
    "Upsample": upsampling,
    "UpsamplingBilinear2d": sizes_or_factors,
    "UpsamplingNearest2d": sizes_or_factors,
}


def infos():
    """Name -> ModuleInfo."""
    return {
        name: ModuleInfo(getattr(nn, name), module_inputs_func=functools.partial(_module_inputs, inputs))
        for name, inputs in INPUTS.items()
    }


def _module_inputs(inputs, info, device, dtype, requires_grad, training):
    def x(*shape):
        return torch.randn(shape, device=device, dtype=dtype, requires_grad=requires_grad)

    return [ModuleInput(construction, forward) for construction, forward in inputs(x)]
