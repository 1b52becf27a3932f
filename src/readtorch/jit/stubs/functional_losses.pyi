"""Losses of `nn.functional` for the compiler: see `_nn_stubs.py`."""

# -------------------------------------------------------------------------------------------------- reductions
def _reduction_name(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> str:
    if size_average is None and reduce is None:
        return reduction
    name = "mean"
    if reduce is not None and not reduce:
        name = "none"
    elif size_average is not None and not size_average:
        name = "sum"
    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.")
    return name

def _reduction_number(reduction: str) -> int:
    if reduction == "none":
        return 0
    elif reduction == "mean":
        return 1
    elif reduction == "sum":
        return 2
    else:
        raise ValueError(f"{reduction} is not a valid value for reduction")

def _reduction(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> int:
    return _reduction_number(_reduction_name(size_average, reduce, reduction))

def _reduced(errors: Tensor, reduction: str, count: Optional[Tensor] = None) -> Tensor:
    if reduction == "none":
        return errors
    if reduction == "sum":
        return torch.sum(errors)
    if reduction == "mean":
        return torch.mean(errors) if count is None else torch.sum(errors) / count
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")

# ------------------------------------------------------------------------------------------------- differences
def _same_size(input: Tensor, target: Tensor, weight: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            + "This will likely lead to incorrect results due to broadcasting. "
            + "Please ensure they have the same size."
        )
    if weight is not None and weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    both = torch.broadcast_tensors([input, target])
    return both[0], both[1]

def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    input, target = _same_size(input, target, weight)
    reduction = _reduction_name(size_average, reduce, reduction)
    if weight is not None:
        return _reduced(torch.pow(input - target, 2) * weight, reduction, torch.sum(weight))
    return torch._C._nn.mse_loss(input, target, _reduction_number(reduction))

def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    input, target = _same_size(input, target, weight)
    reduction = _reduction_name(size_average, reduce, reduction)
    if weight is not None:
        return _reduced(torch.abs(input - target) * weight, reduction, torch.sum(weight))
    return torch._C._nn.l1_loss(input, target, _reduction_number(reduction))

def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    input, target = _same_size(input, target, None)
    number = _reduction(size_average, reduce, reduction)
    if beta == 0.0:
        return torch._C._nn.l1_loss(input, target, number)
    return torch._C._nn.smooth_l1_loss(input, target, number, beta)

def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Optional[Tensor] = None,
) -> Tensor:
    input, target = _same_size(input, target, weight)
    if weight is None:
        return torch._C._nn.huber_loss(input, target, _reduction_number(reduction), delta)
    return _reduced(torch._C._nn.huber_loss(input, target, 0, delta) * weight, reduction)

# ----------------------------------------------------------------------------------------------- probabilities
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    return torch._C._nn.cross_entropy_loss(
        input, target, weight, _reduction(size_average, reduce, reduction), ignore_index, label_smoothing
    )

def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _reduction(size_average, reduce, reduction)
    return torch._C._nn.nll_loss_nd(input, target, weight, number, ignore_index)

def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) "
            + "is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = torch.broadcast_tensors([weight, target])[0]
    number = _reduction(size_average, reduce, reduction)
    return torch._C._nn.binary_cross_entropy(input, target, weight, number)

def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    pos_weight: Optional[Tensor] = None,
) -> Tensor:
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    number = _reduction(size_average, reduce, reduction)
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)

def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    legacy = size_average is not None or reduce is not None
    if reduction == "mean" and not legacy:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            + "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            + "'mean' will be changed to behave the same as 'batchmean' in the next major release."
        )
    name = "sum" if reduction == "batchmean" else reduction
    reduced = torch.kl_div(input, target, _reduction(size_average, reduce, name), log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        reduced = reduced / input.size(0)
    return reduced

def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Optional[bool] = None,
    eps: float = 1e-08,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _reduction(size_average, reduce, reduction)
    return torch.poisson_nll_loss(input, target, log_input, full, eps, number)

def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    number = _reduction_number(reduction)
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)

# ----------------------------------------------------------------------------------------------------- margins
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch._C._nn.soft_margin_loss(input, target, _reduction(size_average, reduce, reduction))

def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            + f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    number = _reduction(size_average, reduce, reduction)
    return torch.margin_ranking_loss(input1, input2, target, margin, number)

def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch.hinge_embedding_loss(input, target, margin, _reduction(size_average, reduce, reduction))

def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _reduction(size_average, reduce, reduction)
    return torch.cosine_embedding_loss(input1, input2, target, margin, number)

def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    number = _reduction(size_average, reduce, reduction)
    return torch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)

def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    number = _reduction(size_average, reduce, reduction)
    return torch._C._nn.multi_margin_loss(input, target, p, margin, weight, number)

def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch._C._nn.multilabel_margin_loss(input, target, _reduction(size_average, reduce, reduction))

def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    loss = -(
        target * torch._C._nn.log_sigmoid(input) + (1 - target) * torch._C._nn.log_sigmoid(-input)
    )
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(dim=-1) / input.size(-1), _reduction_name(size_average, reduce, reduction))
