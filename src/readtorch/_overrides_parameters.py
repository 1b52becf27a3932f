"""The parameters of what `__torch_function__` is told of, and the names of what it is not told of: see overrides.py.

In PyTorch: `torch/overrides.py`, where `get_testing_overrides` has a lambda for each of the first and
`get_ignored_functions` a set of the second.
"""

# Parameters, and the functions below `torch` that have them. A line that begins with blanks continues the one above.
PARAMETERS = """\
(input, out=None) abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh
    bitwise_not ceil linalg.cholesky conj conj_physical resolve_conj resolve_neg cos cosh deg2rad digamma linalg.eig
    linalg.eigvals erf erfc erfinv exp exp2 expm1 fix floor frac frexp geqrf i0 imag isposinf isneginf inverse
    linalg.inv lgamma log log10 log1p log2 logical_not max min neg negative positive rad2deg real reciprocal round
    rsqrt sigmoid sign signbit sgn sin sinc sinh sqrt square linalg.svdvals tan tanh trunc
(input, output_size) adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d
(inputs, output_size) adaptive_max_pool1d
(input) adjoint argmax argmin clone corrcoef count_nonzero dequantize det linalg.det detach
    fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fliplr flipud get_device int_repr is_complex is_conj
    is_neg is_distributed is_inference is_floating_point is_nonzero is_signed isnan logdet matrix_exp
    linalg.matrix_exp nn.functional.logsigmoid nn.functional.softsign nn.functional.tanhshrink argwhere numel
    q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point ravel view_as_real
    view_as_complex slogdet linalg.slogdet sym_float sym_int sym_not _sym_sqrt _sym_cos _sym_cosh _sym_sin _sym_sinh
    _sym_tan _sym_tanh _sym_asin _sym_acos _sym_atan special.airy_ai special.bessel_j0 special.bessel_j1
    special.bessel_y0 special.bessel_y1 special.digamma special.entr special.erf special.erfc special.erfcx
    special.erfinv special.exp2 special.expit special.expm1 special.gammaln special.i0 special.i0e special.i1
    special.i1e special.log1p special.log_ndtr special.logit special.modified_bessel_i0 special.modified_bessel_i1
    special.modified_bessel_k0 special.modified_bessel_k1 special.ndtr special.ndtri special.psi special.round
    special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.sinc special.spherical_bessel_j0 t
    trace
(input, other, out=None) add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
    copysign dot eq fmod gcd ge greater_equal inner gt greater hypot igamma igammac lcm ldexp le less_equal logaddexp
    logaddexp2 logical_and logical_or logical_xor lt less matmul linalg.matmul maximum fmax minimum fmin mul multiply
    ne not_equal nextafter vdot remainder sub subtract special.gammainc special.gammaincc special.xlog1py
    special.xlogy
(input, batch1, batch2, alpha=1, beta=1, out=None) addbmm baddbmm
(input, tensor1, tensor2, value=1, out=None) addcdiv addcmul
(input, mat1, mat2, beta=1, alpha=1, out=None) addmm saddmm sspaddmm
(input, mat, vec, beta=1, alpha=1, out=None) addmv
(input, vec1, vec2, beta=1, alpha=1, out=None) addr
(theta, size, align_corners) affine_grid_generator
(input, dim=None) all amax amin fft.fftshift fft.ifftshift mean median nanmedian repeat_interleave std std_mean sum
    nansum var var_mean
(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) allclose isclose
(input, p, train, inplace=False) alpha_dropout dropout
(input, dim=None, keepdim=False, out=None) aminmax any frobenius_norm
(input, dim=-1, descending=False, *, stable=False) argsort
(input, msg) _assert_async
(*tensors) atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod
(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True) avg_pool1d
(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled) batch_norm
(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count_tensor) batch_norm_backward_elemt
(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g) batch_norm_backward_reduce
(input, weight, bias, mean, invstd, eps) batch_norm_elemt
(input, mean, invstd, running_mean, running_var, momentum, eps, count) batch_norm_gather_stats
    batch_norm_gather_stats_with_counts
(input, eps) batch_norm_stats
(input, running_mean, running_var, momentum) batch_norm_update_stats
(input, generator=None, out=None) bernoulli
(input1, input2, weight, bias) bilinear
(input, target, weight=None, size_average=None, reduce=None, reduction='mean', pos_weight=None)
    binary_cross_entropy_with_logits nn.functional.binary_cross_entropy_with_logits
(input, weights=None, minlength=0) bincount
(count, prob, generator=None) binomial
(input, mat2, out_dtype=None, out=None) bmm mm
(self, size) broadcast_to _sparse_broadcast_to_copy Tensor.expand Tensor.resize_ Tensor.sum_to_size
(input, boundaries, out_int32=False, right=False, out=None) bucketize
(tensors, dim=0, out=None) cat concat concatenate stack
(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary') cdist
(input, alpha=1.0, inplace=False) celu nn.functional.celu nn.functional.elu
(*matrices, out=None) chain_matmul
(input, groups) channel_shuffle native_channel_shuffle
(input, upper=False, out=None) cholesky cholesky_inverse
(input, check_errors=False, out=None) linalg.cholesky_ex linalg.inv_ex
(input1, input2, upper=False, out=None) cholesky_solve
(input, numel, n_bins, ratio, bit_width) choose_qparams_optimized
(input, chunks, dim=0) chunk unsafe_chunk
(input, min=None, max=None, out=None) clamp clip
(input, min, out=None) clamp_min
(input, max, out=None) clamp_max
(tensors, out=None) column_stack dstack hstack linalg.multi_dot row_stack vstack
(input, correction=1, fweights=None, aweights=None) cov
(input, r=2, with_replacement=False) combinations
(real, imag) complex
(abs, ang) polar
(input, ord=None) linalg.cond
(input, pad, value=0) constant_pad_nd
(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1) conv1d conv2d conv3d
(input, weight, bias, stride, padding, dilation, transposed, output_adding, groups) convolution
(input, weight, bias, pad=0) conv_tbc
(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1) conv_transpose1d
    conv_transpose2d conv_transpose3d
(input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean') cosine_embedding_loss
    margin_ranking_loss nn.functional.cosine_embedding_loss nn.functional.margin_ranking_loss
(x1, x2, dim=1, eps=1e-08) cosine_similarity
(input, other, dim=None, out=None) cross
(input, other, dim=-1, out=None) linalg.cross linalg.vecdot
(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False) ctc_loss
    nn.functional.ctc_loss
(input, dim, out=None) cummax cummin logcumsumexp unsqueeze
(input, dim, out=None, dtype=None) cumprod cumsum
(y, x=None, dim=-1) cumulative_trapezoid trapz trapezoid
(input, diagonal=0, out=None) diag diag_embed tril triu
(input, offset=0) diagflat
(input, n=1, dim=-1, prepend=None, append=None, out=None) diff
(input, offset=0, dim1=0, dim2=1) diagonal
(input, offset=0, dim1=-2, dim2=-1) linalg.diagonal
(input, src, offset=0, dim1=0, dim2=1) diagonal_scatter
(self, src, size, stride, storage_offset=None) as_strided_scatter
(input, other, p=2) dist
(input, other, rounding_mode=None, out=None) div divide
(input, mat2, out_dtype=None) dsmm smm spmm
(mat1, mat2) hsmm
(input, indices_or_sections) dsplit hsplit vsplit
(input, UPLO='L', out=None) linalg.eigh linalg.eigvalsh
(equation, *operands) einsum
(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False) embedding
    nn.functional.embedding
(input, weight, offsets, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean', sparse=False,
    per_sample_weights=None, padding_idx=None) embedding_bag
(input, dtype=None, layout=None, device=None, requires_grad=False) empty_like ones_like zeros_like
(input, other) equal floor_divide is_same_size kron true_divide
(input, scale, zero_point, axis, quant_min, quant_max) fake_quantize_per_channel_affine
(input, scale, zero_point, quant_min, quant_max) fake_quantize_per_tensor_affine
(x, observer_on, fake_quant_on, averaging_const, running_min, running_max, scale, zero_point, quant_min, quant_max,
    ch_axis, per_row_fake_quant=False, symmetric_quant=False) fused_moving_avg_obs_fake_quant
(input, packed_weight, bias, output) fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
(input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias) fbgemm_linear_int8_weight
    fbgemm_linear_int8_weight_fp32_activation
(input, a, b) fbgemm_pack_quantized_matrix
(input, p, train) feature_alpha_dropout feature_dropout native_dropout
(input, n=None, dim=-1, norm=None) fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fft
(input, s=None, dim=(-2, -1), norm=None) fft.hfft2 fft.ihfft2 fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2
(input, s=None, dim=-1, norm=None) fft.hfftn fft.ihfftn
(input, s=None, dim=None, norm=None) fft.fftn fft.ifftn fft.rfftn fft.irfftn
(input, start_dim=0, end_dim=-1) flatten
(input, dims) flip tile
(input, exponent, out=None) float_power pow
(input, fill_value, out=None, dtype=None, layout=torch.strided, device=None, requires_grad=False) full_like
(input, msg, dep_token) _functional_assert_async
(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True) lu_unpack
(input, dim, index, out=None, sparse_grad=False) gather
(input, vec2, out=None) outer ger
(input, spacing=None, dim=None, edge_order=1) gradient
(input, grid, interpolation_mode, padding_mode, align_corners) grid_sampler grid_sampler_2d grid_sampler_3d
(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True) group_norm
(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) gru rnn_relu rnn_tanh
(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell
(input, lambd=0.5) hardshrink nn.functional.hardshrink nn.functional.softshrink
(input, dim=None, keepdim=False, mode=0, out=None) hash_tensor
(input, values, out=None) heaviside
(input, target, margin=1.0, size_average=None, reduce=None, reduction='mean') hinge_embedding_loss
    nn.functional.hinge_embedding_loss
(input, bins=100, min=0, max=0, out=None) histc
(input, bins=100, min=None, max=None, weight=None, density=False, out=None) histogram
(input, bins, range=None, weight=None, density=False) histogramdd
(input, tau) linalg.householder_product orgqr
(mat1, mat2, out=None) hspmm
(input, dim, index, source) index_add index_copy
(input, indices, values, accumulate=False) index_put
(input, dim, index, out=None) index_select
(input, dim, index, value) index_fill
(input, dim, index, source, reduce, include_input=True) index_reduce
(tensor) isfinite isinf isreal
(e, te, assume_unique=False, invert=False) isin
(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps, cudnn_enabled) instance_norm
(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None,
    length=None, return_complex=False) istft
(input, target, size_average=None, reduce=None, reduction='mean', log_target=False) kl_div nn.functional.kl_div
(input, k, dim=None, keepdim=False, out=None) kthvalue
(input, hermitian=False, check_errors=False, out=None) linalg.ldl_factor_ex
(input, hermitian=False, out=None) linalg.ldl_factor
(LD, pivots, B, hermitian=False, out=None) linalg.ldl_solve
(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enabled=True) layer_norm
(input, end, weight, out=None) lerp
(input, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
    ortho_iparams=None, ortho_fparams=None, ortho_bparams=None) lobpcg
(input, dim, dtype=None) log_softmax softmax special.log_softmax special.softmax
(x, y, out=None) xlogy
(input, eps=None) logit
(input, names, keepdim=False, out=None) logsumexp
(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional) lstm
(A, pivot=True, get_infos=False, out=None) lu
(b, LU_data, LU_pivots, out=None) lu_solve
(input, mask, value) masked_fill
(input, mask, source) masked_scatter
(input, mask, out=None) masked_select
(input, pivot=True, out=None) linalg.lu linalg.lu_factor
(input, pivot=True, check_errors=False, out=None) linalg.lu_factor_ex
(LU, pivots, B, left=True, adjoint=False, out=None) linalg.lu_solve
(input, n) matrix_power
(input, n, out=None) linalg.matrix_power polygamma special.chebyshev_polynomial_t special.chebyshev_polynomial_u
    special.chebyshev_polynomial_v special.chebyshev_polynomial_w special.hermite_polynomial_h
    special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p special.polygamma
    special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u
    special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w
(input, tol=None, hermitian=False) linalg.matrix_rank
(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False) max_pool1d max_pool2d max_pool3d
(input, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False)
    max_pool1d_with_indices nn.functional.max_pool1d_with_indices nn.functional.max_pool2d_with_indices
    nn.functional.max_pool3d nn.functional.max_pool3d_with_indices
(input, dim=None, keepdim=False, dtype=None, out=None) nanmean
(*tensors, **kwargs) meshgrid
(input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon) miopen_batch_norm
(input, weight, bias, padding, stride, dilation, groups, benchmark, deterministic) miopen_convolution
    miopen_depthwise_convolution
(input, weight, z, alpha, bias, stride, padding, dilation, groups) miopen_convolution_add_relu
(input, weight, bias, stride, padding, dilation, groups) miopen_convolution_relu
(input, weight, bias, padding, output_padding, stride, dilation, groups, benchmark, deterministic)
    miopen_convolution_transpose
(input, weight, weight_stride0, hx, cx, mode, hidden_size, num_layers, batch_first, dropout, train, bidirectional,
    batch_sizes, dropout_state) miopen_rnn
(input, dim=-1, keepdim=False, out=None) mode
(input, source, destination) movedim moveaxis
(input, descending=False, out=None) msort
(input, num_samples, replacement=False, out=None) multinomial
(input, vec, out=None) mv
(input, p) mvlgamma special.multigammaln
(input, dim, start, length) narrow
(input, nan=0.0, posinf=None, neginf=None, out=None) nan_to_num
(input, weight, bias, running_mean, running_var, training, momentum, eps) native_batch_norm
(input, weight, bias, training, momentum, eps) _native_batch_norm_legit
(input, normalized_shape, weight=None, bias=None, eps=1e-05) native_layer_norm nn.functional.layer_norm
(input, normalized_shape, weight=None, eps=1e-05) _fused_rms_norm
(input, weight, bias, N, C, HxW, group, eps) native_group_norm
(input, p=2, dim=None, keepdim=False, dtype=None) native_norm
(input, output_size, return_indices=False) nn.functional.adaptive_max_pool1d
    nn.functional.adaptive_max_pool1d_with_indices nn.functional.adaptive_max_pool2d
    nn.functional.adaptive_max_pool2d_with_indices nn.functional.adaptive_max_pool3d
    nn.functional.adaptive_max_pool3d_with_indices
(theta, size, align_corners=None) nn.functional.affine_grid
(input, p=0.5, training=False, inplace=False) nn.functional.alpha_dropout nn.functional.feature_alpha_dropout
(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None)
    nn.functional.avg_pool2d nn.functional.avg_pool3d
(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05)
    nn.functional.batch_norm
(input1, input2, weight, bias=None) nn.functional.bilinear
(input, target, weight=None, size_average=None, reduce=None, reduction='mean') nn.functional.binary_cross_entropy
    nn.functional.multilabel_soft_margin_loss
(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', label_smoothing=0.0)
    nn.functional.cross_entropy
(input, linear_weight, target, linear_bias=None, weight=None, reduction='mean', ignore_index=None,
    label_smoothing=0.0, options=None) nn.functional.linear_cross_entropy
(input, p=0.5, training=True, inplace=False) nn.functional.dropout nn.functional.dropout1d nn.functional.dropout2d
    nn.functional.dropout3d
(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean', sparse=False,
    per_sample_weights=None, include_last_offset=False, padding_idx=None) nn.functional.embedding_bag
(input, output_size, kernel_size, dilation=1, padding=0, stride=1) nn.functional.fold
(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None)
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool2d_with_indices
    nn.functional.fractional_max_pool3d nn.functional.fractional_max_pool3d_with_indices
(input, target, var, full=False, eps=1e-06, reduction='mean') nn.functional.gaussian_nll_loss
(input, approximate='none') nn.functional.gelu
(input, dim=-1) nn.functional.glu
(input, grid, mode='bilinear', padding_mode='zeros', align_corners=None) nn.functional.grid_sample
(input, num_groups, weight=None, bias=None, eps=1e-05) nn.functional.group_norm
(logits, tau=1, hard=False, eps=1e-10, dim=-1) nn.functional.gumbel_softmax
(input, min_val=-1.0, max_val=1.0, inplace=False) nn.functional.hardtanh
(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05)
    nn.functional.instance_norm
(input, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None,
    antialias=False) nn.functional.interpolate
(input, target, size_average=None, reduce=None, reduction='mean', weight=None) nn.functional.l1_loss
    nn.functional.mse_loss
(input, negative_slope=0.01, inplace=False) nn.functional.leaky_relu
(input, weight, bias=None) nn.functional.linear
(input, size, alpha=0.0001, beta=0.75, k=1.0) nn.functional.local_response_norm
(input, dim=None, _stacklevel=3, dtype=None) nn.functional.log_softmax nn.functional.softmax nn.functional.softmin
(input, norm_type, kernel_size, stride=None, ceil_mode=False) nn.functional.lp_pool1d nn.functional.lp_pool2d
    nn.functional.lp_pool3d
(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False)
    nn.functional.max_pool1d nn.functional.max_pool2d
(input, indices, kernel_size, stride=None, padding=0, output_size=None) nn.functional.max_unpool1d
    nn.functional.max_unpool2d nn.functional.max_unpool3d
(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
    dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True,
    attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
    static_k=None, static_v=None, average_attn_weights=None, is_causal=False)
    nn.functional.multi_head_attention_forward
(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean')
    nn.functional.multi_margin_loss
(input, target, size_average=None, reduce=None, reduction='mean') nn.functional.multilabel_margin_loss
    nn.functional.soft_margin_loss
(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean')
    nn.functional.nll_loss
(input, p=2, dim=1, eps=1e-12, out=None) nn.functional.normalize
(tensor, num_classes=-1) nn.functional.one_hot
(input, pad, mode='constant', value=0) nn.functional.pad
(x1, x2, p=2.0, eps=1e-06, keepdim=False) nn.functional.pairwise_distance pairwise_distance
(input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean')
    nn.functional.poisson_nll_loss
(input, weight) nn.functional.prelu prelu
(input, inplace=False) nn.functional.relu nn.functional.relu6 nn.functional.selu nn.functional.silu nn.functional.mish
    relu selu
(input, normalized_shape, weight=None, eps=1e-06) nn.functional.rms_norm rms_norm
(input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False) nn.functional.rrelu
(query, key, value, attn_mask=None, dropout_p=0.0) nn.functional.scaled_dot_product_attention
(input, target, size_average=None, reduce=None, reduction='mean', beta=1.0) nn.functional.smooth_l1_loss
(input, target, reduction='mean', delta=1.0, weight=None) nn.functional.huber_loss
(input, beta=1, threshold=20) nn.functional.softplus
(input, threshold, value, inplace=False) nn.functional.threshold threshold
(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, size_average=None, reduce=None, reduction='mean')
    nn.functional.triplet_margin_loss triplet_margin_loss
(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction='mean')
    nn.functional.triplet_margin_with_distance_loss
(input, kernel_size, dilation=1, padding=0, stride=1) nn.functional.unfold
(tensor, a=0.0, b=1.0, generator=None) nn.init.uniform_
(tensor, mean=0.0, std=1.0, generator=None) nn.init.normal_
(tensor, val) nn.init.constant_
(tensor, a=0, mode='fan_in', nonlinearity='leaky_relu', generator=None) nn.init.kaiming_uniform_
(input, as_tuple=False) nonzero
(input, *, size, fill_value=-1) nonzero_static
(input, p='fro', dim=None, keepdim=False, out=None, dtype=None) norm nuclear_norm
(input, ord=None, dim=None, keepdim=False, out=None, dtype=None) linalg.norm
(input, ord=2, dim=None, keepdim=False, out=None, dtype=None) linalg.vector_norm
(input, ord='fro', dim=(-2, -1), keepdim=False, out=None, dtype=None) linalg.matrix_norm
(v, pow=2, dim=0) norm_except_dim
(input, input2, input3, left=True, transpose=False) ormqr
(self, dim) permute squeeze_copy unsqueeze_copy Tensor.log_softmax Tensor.permute
(input, q=None, center=True, niter=2) pca_lowrank
(input, p=2) pdist
(input, rcond=1e-15) pinverse
(input, rcond=1e-15, hermitian=False) linalg.pinv
(input, upscale_factor) pixel_shuffle
(input, downscale_factor) pixel_unshuffle
(input, generator=None) poisson
(input, target, log_input, full, eps, reduction) poisson_nll_loss
(input, dtype=None) prod
(input, index, source, accumulate=False) put
(input, some=True, out=None) qr
(input, mode='reduced', out=None) linalg.qr
(input, q, dim=None, keepdim=False, interpolation='linear', out=None) quantile nanquantile
(input, scales, zero_points, axis, dtype) quantize_per_channel
(input, scale, zero_point, dtype) quantize_per_tensor
(input, dtype, reduce_range) quantize_per_tensor_dynamic
(input, weight, bias, mean, var, eps, output_scale, output_zero_point) quantized_batch_norm
(input, hx, w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, col_offsets_ih, col_offsets_hh, scale_ih, scale_hh,
    zero_point_ih, zero_point_hh) quantized_gru_cell quantized_lstm_cell quantized_rnn_relu_cell
    quantized_rnn_tanh_cell
(input, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False) quantized_max_pool1d
(input, kernel_size, stride=(), padding=(0, 0), dilation=(1, 1), ceil_mode=False) quantized_max_pool2d
(input, kernel_size, stride=(), padding=(0, 0, 0), dilation=(1, 1, 1), ceil_mode=False) quantized_max_pool3d
(input, p, dim, maxnorm, out=None) renorm
(input, shape) reshape
(input, shifts, dims=None) roll
(input, k=1, dims=(0, 1)) rot90
(weight, mask, compressed_indices_dtype) _rowwise_prune
(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False) rrelu
(input, other, alpha=1) rsub
(input, dim, index, src=None, *, value=None, reduce=None) scatter
(input, dim, index, src) scatter_add
(input, dim, index, src, reduce, include_self=True) scatter_reduce
(sorted_sequence, input, out_int32=False, right=False, out=None) searchsorted
(data, reduce='max', lengths=None, indices=None, offsets=None, axis=0, unsafe=False) _segment_reduce
(input, dim, index) select
(input, src, dim, index) select_scatter
(input, src, dim=0, start=None, end=None, step=1) slice_inverse slice_scatter
(A, B, left=True, out=None) linalg.solve
(A, B, left=True, check_errors=False, out=None) linalg.solve_ex
(input, dim=-1, descending=False, *, stable=False, out=None) sort
(tensor, split_size_or_sections, dim=0) split split_with_sizes unsafe_split unsafe_split_with_sizes
(input, dim=None, out=None) squeeze
(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect', normalized=False,
    onesided=True, return_complex=None, align_to_window=None) stft
(a, b) sym_max sym_min
(a, b, c) sym_ite
(args) sym_sum
(input, some=True, compute_uv=True, out=None) svd
(input, q=6, niter=2, M=None) svd_lowrank
(input, full_matrices=True, out=None) linalg.svd
(input, dim0, dim1) swapaxes transpose
(input, axis0, axis1) swapdims
(input, dim, keepdim=False, out=None) special.logsumexp
(self, other, out=None) special.zeta
(input, index) take
(input, indices, dim=None, out=None) take_along_dim
(a, ind=2) linalg.tensorinv
(a, b, dims=None) linalg.tensorsolve
(a, b, dims=2, out=None) tensordot
(input, indices_or_sections, dim=0) tensor_split
(input, k, dim=-1, descending=False, out=None) topk
(input, A, upper=True, transpose=False, unitriangular=False) triangular_solve
(input, B, upper, left=True, unitriangular=False) linalg.solve_triangular
(input, dim=0) unbind
(input, dim, sizes) unflatten
(input, sorted=True, return_inverse=False, return_counts=False, dim=None) unique
(input, return_inverse=False, return_counts=False, dim=None) unique_consecutive
(indices, shape) unravel_index
(x, N=None) linalg.vander
(condition, x=None, y=None) where
(weight, weight_scale, weight_zero_point, bias) _wrapped_linear_prepack
(input, input_scale, input_zero_point, prepacked, out_scale, out_zero_point, out_channel)
    _wrapped_quantized_linear_prepacked
(self, level) _fw_primal_copy
(primal, tangent, level) _make_dual_copy
(self) view_as_real_copy view_as_complex_copy _conj_copy _neg_view_copy detach_copy t_copy _indices_copy _values_copy
    indices_copy values_copy crow_indices_copy col_indices_copy ccol_indices_copy row_indices_copy alias_copy
    Tensor.__float__ Tensor.__complex__ Tensor.__bool__ Tensor.__neg__ Tensor.__invert__ Tensor.__int__
    Tensor.__long__ Tensor.__index__ Tensor.__len__ Tensor.__reversed__ Tensor.T.__get__ Tensor.H.__get__
    Tensor.mT.__get__ Tensor.mH.__get__ Tensor._backward_hooks.__get__ Tensor._post_accumulate_grad_hooks.__get__
    Tensor._base.__get__ Tensor._cdata.__get__ Tensor.grad.__get__ Tensor._grad.__get__ Tensor._grad_fn.__get__
    Tensor.grad_fn.__get__ Tensor.grad_dtype.__get__ Tensor._version.__get__
    Tensor._clear_non_serializable_cached_data Tensor.data.__get__ Tensor.device.__get__ Tensor.dtype.__get__
    Tensor.is_cuda.__get__ Tensor.is_cpu.__get__ Tensor.is_xla.__get__ Tensor.is_xpu.__get__ Tensor.is_ipu.__get__
    Tensor.is_leaf.__get__ Tensor.retains_grad.__get__ Tensor.is_meta.__get__ Tensor.is_mps.__get__
    Tensor.is_mtia.__get__ Tensor.is_nested.__get__ Tensor.is_maia.__get__ Tensor.is_mkldnn.__get__
    Tensor.is_quantized.__get__ Tensor.is_sparse.__get__ Tensor.is_sparse_csr.__get__ Tensor.is_vulkan.__get__
    Tensor.itemsize.__get__ Tensor.layout.__get__ Tensor.name.__get__ Tensor.nbytes.__get__ Tensor.ndim.__get__
    Tensor.output_nr.__get__ Tensor.requires_grad.__get__ Tensor.shape.__get__ Tensor.volatile.__get__
    Tensor.real.__get__ Tensor.imag.__get__ Tensor.__cuda_array_interface__.__get__ Tensor._dimI Tensor._dimV
    Tensor._indices Tensor._is_view Tensor._nnz Tensor.crow_indices Tensor.col_indices Tensor.ccol_indices
    Tensor.row_indices Tensor._values Tensor.adjoint Tensor.coalesce Tensor.const_data_ptr Tensor.data_ptr
    Tensor.dense_dim Tensor.dim Tensor.element_size Tensor.get_device Tensor.indices Tensor.is_coalesced
    Tensor.is_contiguous Tensor.is_inference Tensor.is_pinned Tensor.is_shared Tensor.item Tensor.ndimension
    Tensor.nelement Tensor._nested_tensor_size Tensor._nested_tensor_storage_offsets Tensor._nested_tensor_strides
    Tensor.normal_ Tensor.numpy Tensor.pin_memory Tensor.qscheme Tensor.retain_grad Tensor.share_memory_ Tensor.size
    Tensor.sparse_dim Tensor.storage Tensor.untyped_storage Tensor.storage_offset Tensor.storage_type Tensor.to_sparse
    Tensor.tolist Tensor.to_mkldnn Tensor.values Tensor.zero_ Tensor.__dlpack_device__
(self, size, stride, storage_offset=None) as_strided_copy
(self, offset=0, dim1=0, dim2=1) diagonal_copy
(self, size, *, implicit=False) expand_copy
(self, dim, start, length) narrow_copy
(self, dims) permute_copy
(self, size, stride) _reshape_alias_copy Tensor.as_strided Tensor.as_strided_
(self, dim, index) select_copy
(self, dim=0, start=None, end=None, step=1) slice_copy
(self, split_size, dim=0) split_copy
(self, split_sizes, dim=0) split_with_sizes_copy
(self, dim0, dim1) transpose_copy
(self, dim=0) unbind_copy
(self, dtype) view_copy Tensor.__array__
(self, dimension, size, step) unfold_copy Tensor.unfold
(self, other) Tensor.__floordiv__ Tensor.__rfloordiv__ Tensor.__ifloordiv__ Tensor.__truediv__ Tensor.__rtruediv__
    Tensor.__itruediv__ Tensor.__lshift__ Tensor.__rlshift__ Tensor.__ilshift__ Tensor.__rshift__ Tensor.__rrshift__
    Tensor.__irshift__ Tensor.__and__ Tensor.__or__ Tensor.__xor__ Tensor.__contains__ Tensor.__mod__ Tensor.__rmod__
    Tensor.__imod__ Tensor.expand_as Tensor.reshape_as Tensor.resize_as Tensor.resize_as_sparse_ Tensor.type_as
    Tensor.view_as
(self, array) Tensor.__array_wrap__
(self, idx) Tensor.__getitem__
(self, memo) Tensor.__deepcopy__
(self, format_spec) Tensor.__format__
(self, proto) Tensor.__reduce_ex__
(self, *, tensor_contents=None) Tensor.__repr__
(self, k, v) Tensor.__setitem__
(self, d) Tensor.__setstate__
(self, cuda_enabled, cpu_enabled, cuda_dtype, cpu_dtype) Tensor._autocast_to_reduced_precision
(self, cuda_enabled, cpu_enabled) Tensor._autocast_to_full_precision
(self, dtype=None, non_blocking=False, **kwargs) Tensor.type
(self, callable) Tensor.apply_
(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) Tensor.backward
(self, memory_format=preserve_format) Tensor.bfloat16 Tensor.bool Tensor.byte Tensor.char Tensor.cpu Tensor.cuda
    Tensor.mtia Tensor.xpu Tensor.ipu Tensor.double Tensor.cdouble Tensor.float Tensor.cfloat Tensor.half Tensor.chalf
    Tensor.int Tensor.long Tensor.short
(self, median=0, sigma=1, *, generator=None) Tensor.cauchy_
(self, coalesced) Tensor._coalesced_
(self, memory_format=contiguous_format) Tensor.contiguous
(self, src, non_blocking=False) Tensor.copy_
(self, src, offset=0, dim1=0, dim2=1) Tensor.diagonal_scatter
(self, ambiguity_check=False) Tensor.dim_order
(self, lambd=1, *, generator=None) Tensor.exponential_
(self, value) Tensor.fill_ Tensor.fill_diagonal_
(self, p, *, generator=None) Tensor.geometric_
(self, tensor) Tensor.is_set_to
(self, mean=1, std=2, *, generator=None) Tensor.log_normal_
(self, tensor, callable) Tensor.map_
(self, x, y, callable) Tensor.map2_
(self, mat2, out_dtype=None) Tensor.mm
(self, other, assign=False) Tensor.module_load
(self, dimension, start, length) Tensor.narrow_copy
(self, indices, tensor, accumulate=False) Tensor.put_
(self, from_=0, to=None, *, generator=None) Tensor.random_
(self, stream) Tensor.record_stream
(self, hook) Tensor.register_hook Tensor.register_post_accumulate_grad_hook
(self, *size) Tensor.repeat Tensor.resize
(self, requires_grad=True) Tensor.requires_grad_
(self, source=None, storage_offset=0, size=None, stride=None) Tensor.set_
(self, src, dim, index) Tensor.select_scatter
(self, src, dim=0, start=None, end=None, step=1) Tensor.slice_scatter
(self, mask) Tensor.sparse_mask
(self, mask, accumulate_matches=False) Tensor._sparse_mask_projection
(self, size1, size2, dense_dim) Tensor.sparse_resize_ Tensor.sparse_resize_and_clear_
(self, mat1, mat2, beta=1, alpha=1, out=None) Tensor.sspaddmm
(self, *reps) Tensor.tile
(self, dtype, non_blocking=False, copy=False, memory_format=preserve_format) Tensor.to
(self, dtype=None, *, masked_grad=None) Tensor.to_dense
(self, dtype=None, masked_grad=None) Tensor._to_dense
(self, from_=0, to=1) Tensor.uniform_
(self, shape) Tensor.view
(self, stream=None, max_version=None, dl_device=None, copy=None) Tensor.__dlpack__
(self, a, b) Tensor.index
(self, b, cond=None, driver=None) linalg.lstsq
(tensor, src=None, group=None, async_op=False, group_src=None) distributed.broadcast
(tensor, op=None, group=None, async_op=False) distributed.all_reduce
(tensor, dst=None, op=None, group=None, async_op=False, group_dst=None) distributed.reduce
(tensors, op=None, group=None, async_op=False) distributed.all_reduce_coalesced
(tensor_list, tensor, group=None, async_op=False) distributed.all_gather
(output_tensor, input_tensor, group=None, async_op=False) distributed.all_gather_single
(output_tensor_lists, input_tensor_list, group=None, async_op=False) distributed.all_gather_coalesced
(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None) distributed.gather
(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None) distributed.scatter
(output, input_list, op=None, group=None, async_op=False) distributed.reduce_scatter
(output, input, op=None, group=None, async_op=False) distributed.reduce_scatter_single
(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False)
    distributed.all_to_all_single
(output_tensor_list, input_tensor_list, group=None, async_op=False) distributed.all_to_all
(tensor, dst=None, group=None, tag=0, group_dst=None) distributed.isend distributed.send
(tensor, src=None, group=None, tag=0, group_src=None) distributed.irecv distributed.recv
"""

IGNORED = """\
typename is_tensor is_storage set_default_tensor_type set_default_device get_default_device set_rng_state
get_rng_state manual_seed initial_seed seed thread_safe_generator save load set_printoptions fork get_default_dtype
get_num_interop_threads get_num_threads init_num_threads import_ir_module import_ir_module_from_buffer
is_anomaly_enabled is_anomaly_check_nan_enabled is_grad_enabled merge_type_from_type_comment parse_ir parse_schema
parse_type_comment set_anomaly_enabled set_flush_denormal set_num_interop_threads set_num_threads wait as_tensor
from_numpy tensor default_generator has_cuda has_cudnn has_lapack device dtype finfo has_mkl has_mps has_mkldnn
has_openmp iinfo memory_format qscheme set_grad_enabled no_grad enable_grad inference_mode is_inference_mode_enabled
layout arange as_strided bartlett_window blackman_window broadcast_shapes can_cast compile cudnn_affine_grid_generator
cudnn_batch_norm cudnn_convolution cudnn_convolution_transpose cudnn_convolution_relu cudnn_convolution_add_relu
cudnn_grid_sampler cudnn_is_acceptable miopen_ctc_loss empty empty_permuted empty_strided empty_quantized
export.export export.load export.register_dataclass export.save eye fft.fftfreq fft.rfftfreq from_file full fill
hamming_window hann_window kaiser_window linspace logspace mkldnn_adaptive_avg_pool2d mkldnn_convolution
mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_linear_backward_weights mkldnn_rnn_layer normal ones promote_types rand
rand_like randn randn_like randint randint_like randperm range result_type scalar_tensor sparse_coo_tensor
sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor sym_constrain_range
sym_constrain_range_for_size sym_fresh_size tril_indices triu_indices vander zeros _jit_internal.boolean_dispatch
nn.functional.assert_int_or_pair nn.functional.upsample nn.functional.upsample_bilinear nn.functional.upsample_nearest
nn.functional.has_torch_function nn.functional.has_torch_function_unary nn.functional.has_torch_function_variadic
nn.functional.handle_torch_function nn.functional.grouped_mm nn.functional.scaled_grouped_mm nn.functional.scaled_mm
nn.functional.sigmoid nn.functional.hardsigmoid nn.functional.tanh nn.functional._canonical_mask
nn.functional._none_or_dtype nn.init.calculate_gain nn.init.uniform nn.init.normal nn.init.constant nn.init.eye
nn.init.dirac nn.init.xavier_uniform nn.init.xavier_normal nn.init.kaiming_uniform nn.init.kaiming_normal
nn.init.orthogonal nn.init.sparse nested.to_padded_tensor set_autocast_enabled is_autocast_enabled set_autocast_dtype
get_autocast_dtype clear_autocast_cache set_autocast_cpu_enabled is_autocast_cpu_enabled set_autocast_xla_enabled
is_autocast_xla_enabled set_autocast_ipu_enabled is_autocast_ipu_enabled set_autocast_cpu_dtype get_autocast_cpu_dtype
set_autocast_ipu_dtype get_autocast_ipu_dtype get_autocast_gpu_dtype set_autocast_gpu_dtype get_autocast_xla_dtype
set_autocast_xla_dtype autocast_increment_nesting autocast_decrement_nesting is_autocast_cache_enabled
set_autocast_cache_enabled nn.functional.hardswish is_vulkan_available are_deterministic_algorithms_enabled
use_deterministic_algorithms is_deterministic_algorithms_warn_only_enabled set_deterministic_debug_mode
get_device_module get_deterministic_debug_mode set_float32_matmul_precision get_float32_matmul_precision
unify_type_list is_warn_always_enabled set_warn_always vmap cond frombuffer asarray _functional_sym_constrain_range
_make_dep_token Tensor.__delitem__ Tensor.__dir__ Tensor.__getattribute__ Tensor.__init__ Tensor.__iter__
Tensor.__init_subclass__ Tensor.__delattr__ Tensor.__setattr__ Tensor.__torch_function__ Tensor.__torch_dispatch__
Tensor.__new__ Tensor.__class__ Tensor.__subclasshook__ Tensor.__hash__ Tensor.as_subclass Tensor.eig Tensor.lstsq
Tensor.reinforce Tensor.new Tensor.new_tensor Tensor.new_empty Tensor.new_empty_strided Tensor.new_zeros
Tensor.new_ones Tensor.new_full Tensor._make_subclass Tensor.solve Tensor.symeig Tensor.stride Tensor.unflatten
Tensor.to_sparse_coo Tensor.to_sparse_csr Tensor.to_sparse_csc Tensor.to_sparse_bsr Tensor.to_sparse_bsc
Tensor._to_sparse Tensor._to_sparse_csr Tensor._to_sparse_csc Tensor._to_sparse_bsr Tensor._to_sparse_bsc
Tensor._typed_storage Tensor._reduce_ex_internal Tensor._fix_weakref Tensor._view_func Tensor._view_func_unsafe
Tensor._rev_view_func_unsafe Tensor._dtensor__new__ Tensor._make_wrapper_subclass Tensor._python_dispatch.__get__
Tensor._has_symbolic_sizes_strides.__get__ Tensor._conj Tensor._conj_physical Tensor._lazy_clone Tensor._neg_view
Tensor._is_zerotensor Tensor._is_all_true Tensor._is_any_true Tensor._addmm_activation Tensor.to_padded_tensor
Tensor._use_count Tensor._philox_normal_ Tensor._philox_uniform_
"""
