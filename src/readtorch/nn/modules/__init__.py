"""All layers. In PyTorch: `torch/nn/modules/__init__.py`. See the chapter "Layers, functional, init"."""
from readtorch.nn.modules.activation import *  # noqa: F403
from readtorch.nn.modules.batchnorm import *  # noqa: F403
from readtorch.nn.modules.adaptive import *  # noqa: F403
from readtorch.nn.modules.channelshuffle import *  # noqa: F403
from readtorch.nn.modules.container import *  # noqa: F403
from readtorch.nn.modules.conv import *  # noqa: F403
from readtorch.nn.modules.distance import *  # noqa: F403
from readtorch.nn.modules.dropout import *  # noqa: F403
from readtorch.nn.modules.flatten import *  # noqa: F403
from readtorch.nn.modules.fold import *  # noqa: F403
from readtorch.nn.modules.instancenorm import *  # noqa: F403
from readtorch.nn.modules.linear import *  # noqa: F403
from readtorch.nn.modules.linear_cross_entropy_options import *  # noqa: F403
from readtorch.nn.modules.loss import *  # noqa: F403
from readtorch.nn.modules.module import Module
from readtorch.nn.modules.multihead_attention import *  # noqa: F403
from readtorch.nn.modules.normalization import *  # noqa: F403
from readtorch.nn.modules.padding import *  # noqa: F403
from readtorch.nn.modules.pooling import *  # noqa: F403
from readtorch.nn.modules.rnn import *  # noqa: F403
from readtorch.nn.modules.pixelshuffle import *  # noqa: F403
from readtorch.nn.modules.transformer import *  # noqa: F403
from readtorch.nn.modules.sparse import *  # noqa: F403
from readtorch.nn.modules.upsampling import *  # noqa: F403
from readtorch.nn.modules import _functions

__all__ = [name for name, value in list(vars().items()) if isinstance(value, type)]
