"""A softmax over very many classes that looks at the rare ones only when it must.

Note [ Clusters of rare classes ]
Classes are numbered by frequency. The head scores the first ones, and one entry for each cluster of the
others; a cluster has a small layer of its own, through a bottleneck that is narrower the rarer its classes are.
The log-probability of a rare class is that of its cluster plus that of the class within it, so a batch of
frequent classes never touches a tail.

In PyTorch: `torch/nn/modules/adaptive.py`. See the chapter "Layers: convolution, embedding, recurrence".
E. Grave et al.: Efficient softmax approximation for GPUs (2017).
"""

from collections import namedtuple
from itertools import pairwise

import readtorch
from readtorch.nn import functional as F

from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Input (N, in_features) or (in_features), target (N) or (): the targets' log-probabilities and their mean loss.

    cutoffs: the first class of each cluster, ascending; cluster i passes through in_features / div_value^(i+1) numbers.
    See Note [ Clusters of rare classes ].
    """

    def __init__(
        self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        _check_cutoffs(cutoffs, n_classes)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        factory = {"device": device, "dtype": dtype}
        self.head = Linear(self.in_features, self.head_size, bias=self.head_bias, **factory)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hsz = int(self.in_features // (self.div_value ** (i + 1)))
            osz = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(self.in_features, hsz, bias=False, **factory), Linear(hsz, osz, bias=False, **factory)
                )
            )

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for i2h, h2o in self.tail:
            i2h.reset_parameters()
            h2o.reset_parameters()

    def forward(self, input_, target_):
        _check_sizes(input_, target_)
        is_batched = target_.dim() > 0
        input = input_ if is_batched else input_.unsqueeze(0)
        target = target_ if is_batched else target_.unsqueeze(0)
        output, gather_inds = self._within_clusters(input, target)
        head_logprob = F.log_softmax(self.head(input), dim=1)
        output += head_logprob.gather(1, gather_inds.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if is_batched else output.squeeze(0), loss)

    def _within_clusters(self, input, target):
        """The log-probability of each target within its cluster (0 in the shortlist), and its entry in the head."""
        batch_size, used_rows = target.size(0), 0
        output = input.new_zeros(batch_size)
        gather_inds = target.new_empty(batch_size)
        for i, (low_idx, high_idx) in enumerate(pairwise([0, *self.cutoffs])):
            target_mask = (target >= low_idx) & (target < high_idx)
            row_indices = target_mask.nonzero().squeeze()
            if row_indices.numel() == 0:
                continue
            if i == 0:
                gather_inds.index_copy_(0, row_indices, target[target_mask])
            else:
                relative_target = target[target_mask] - low_idx
                cluster_output = self.tail[i - 1](input.index_select(0, row_indices))
                gather_inds.index_fill_(0, row_indices, self.shortlist_size + i - 1)
                cluster_logprob = F.log_softmax(cluster_output, dim=1)
                local_logprob = cluster_logprob.gather(1, relative_target.unsqueeze(1))
                output.index_copy_(0, row_indices, local_logprob.squeeze(1))
            used_rows += row_indices.numel()
        if used_rows != batch_size:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], "
                f"but values in range [{target.min().item()}, {target.max().item()}] "
                "were found. "
            )
        return output, gather_inds

    def _get_full_log_prob(self, input, head_output):
        """The log-probabilities of all classes: (N, n_classes)."""
        out = input.new_empty((head_output.size(0), self.n_classes))
        head_logprob = F.log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = head_logprob[:, : self.shortlist_size]
        for i, (start_idx, stop_idx) in enumerate(pairwise(self.cutoffs)):
            cluster_logprob = F.log_softmax(self.tail[i](input), dim=1)
            out[:, start_idx:stop_idx] = cluster_logprob + head_logprob[:, self.shortlist_size + i].unsqueeze(1)
        return out

    def log_prob(self, input):
        """The log-probabilities of all classes: (N, in_features) to (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most probable class of each sample: (N, in_features) to (N). Tails are asked only if need be."""
        head_output = self.head(input)
        output = readtorch.argmax(head_output, dim=1)
        not_in_shortlist = output >= self.shortlist_size
        if not not_in_shortlist.any():
            return output
        if not_in_shortlist.all():
            return readtorch.argmax(self._get_full_log_prob(input, head_output), dim=1)
        log_prob = self._get_full_log_prob(input[not_in_shortlist], head_output[not_in_shortlist])
        output[not_in_shortlist] = readtorch.argmax(log_prob, dim=1)
        return output


def _check_cutoffs(cutoffs, n_classes):
    if len(cutoffs) == 0:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    is_ascending = cutoffs == sorted(set(cutoffs))
    if not is_ascending or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or any(int(c) != c for c in cutoffs):
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where "
            "each value is between 1 and n_classes-1"
        )


def _check_sizes(input_, target_):
    targ_dim = target_.dim()
    if targ_dim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if targ_dim == 1 and input_.size(0) != target_.size(0):
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    if input_.dim() != targ_dim + 1:
        raise RuntimeError(
            f"{targ_dim}D target tensor expects {targ_dim + 1}D input tensors, "
            f"but found inputs with size {input_.size()}"
        )
