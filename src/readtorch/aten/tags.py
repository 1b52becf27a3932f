"""What is said of operators in `tags`: pointwise, random, with an output whose shape depends on the data …

In PyTorch: `aten/src/ATen/native/tags.yaml` says what each tag means, and the entries of
`aten/src/ATen/native/native_functions.yaml` carry them. Explained in the chapter "One operator call".
"""

from enum import Enum


class Tag(Enum):
    """What may be said of an operator. The numbers are PyTorch's."""

    __module__ = "readtorch"  # where everybody finds it

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19

    def __int__(self):
        return self.value


# Tag -> the names of its operators. `out` and `inplace` follow from the schema; all operators of aten are
# `pt2_compliant_tag`. In PyTorch an operator that the code generator derives carries `generated`.
_NAMES = {
    Tag.core: """
        _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _cdist_forward _embedding_bag
        _fft_c2r _fft_r2c _local_scalar_dense _log_softmax _native_batch_norm_legit
        _native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training _pdist_forward _softmax _to_copy abs
        acos acosh adaptive_avg_pool1d add.Scalar add.Tensor addmm alias amax amin any any.dim any.dims
        arange.start_step argmax argmin as_strided asin asinh atan atan2 atan2.out atanh avg_pool1d avg_pool2d
        avg_pool2d_backward avg_pool3d bitwise_and.Scalar bitwise_and.Tensor bitwise_not bitwise_or.Scalar
        bitwise_or.Tensor bitwise_xor.Scalar bitwise_xor.Tensor bmm cat ceil clamp clamp.Tensor clone col2im
        constant_pad_nd convolution convolution_backward copy cos cosh cumsum diagonal div.Scalar div.Tensor
        div.Tensor_mode elu embedding embedding_dense_backward empty.memory_format empty_strided eq.Scalar eq.Tensor
        erf exp expand expm1 fill.Scalar flip floor fmod.Scalar fmod.Tensor full full_like gather ge.Scalar
        ge.Tensor gelu grid_sampler_2d gt.Scalar gt.Tensor hardtanh index.Tensor index_put index_select isinf isnan
        le.Scalar le.Tensor leaky_relu log log10 log1p log2 logical_and logical_not logical_or logical_xor lt.Scalar
        lt.Tensor masked_scatter max.dim max_pool2d_with_indices max_pool2d_with_indices_backward
        max_pool3d_with_indices maximum mean mean.dim min.dim minimum mm mul.Scalar mul.Tensor native_dropout
        native_group_norm native_group_norm_backward native_layer_norm native_layer_norm_backward ne.Scalar
        ne.Tensor neg nonzero permute pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prod prod.dim_int rand randn
        randperm reciprocal reflection_pad1d reflection_pad2d reflection_pad3d relu remainder.Scalar
        remainder.Tensor repeat replication_pad2d replication_pad3d resize_ round rsqrt scalar_tensor scatter.src
        scatter.value scatter_add scatter_reduce.two select.int select_scatter sigmoid sign sin sinh slice.Tensor
        slice_scatter sort split_with_sizes sqrt squeeze.dim squeeze.dims sub.Scalar sub.Tensor sum.dim_IntList
        sym_numel sym_size.int sym_storage_offset sym_stride.int tan tanh topk trunc unsqueeze upsample_bilinear2d.vec
        upsample_nearest2d.vec var.correction var.dim view where.self""",
    Tag.pointwise: """
        _conj_physical abs abs.out acos acos.out acos_ acosh acosh.out acosh_ add.Scalar add.Tensor add.out
        add_.Tensor addcdiv addcdiv.out addcdiv_ addcmul addcmul.out addcmul_ angle angle.out asin asin.out asin_
        asinh asinh.out asinh_ atan atan.out atan2 atan2.out atan2_ atan_ atanh atanh.out atanh_ bitwise_and.Scalar
        bitwise_and.Scalar_Tensor bitwise_and.Scalar_out bitwise_and.Tensor bitwise_and.Tensor_out
        bitwise_and_.Scalar bitwise_and_.Tensor bitwise_left_shift.Scalar_Tensor bitwise_left_shift.Tensor
        bitwise_left_shift.Tensor_Scalar bitwise_left_shift.Tensor_Scalar_out bitwise_left_shift.Tensor_out
        bitwise_left_shift_.Tensor bitwise_left_shift_.Tensor_Scalar bitwise_not bitwise_not.out bitwise_not_
        bitwise_or.Scalar bitwise_or.Scalar_Tensor bitwise_or.Scalar_out bitwise_or.Tensor bitwise_or.Tensor_out
        bitwise_or_.Scalar bitwise_or_.Tensor bitwise_right_shift.Scalar_Tensor bitwise_right_shift.Tensor
        bitwise_right_shift.Tensor_Scalar bitwise_right_shift.Tensor_Scalar_out bitwise_right_shift.Tensor_out
        bitwise_right_shift_.Tensor bitwise_right_shift_.Tensor_Scalar bitwise_xor.Scalar bitwise_xor.Scalar_Tensor
        bitwise_xor.Scalar_out bitwise_xor.Tensor bitwise_xor.Tensor_out bitwise_xor_.Scalar bitwise_xor_.Tensor
        ceil ceil.out ceil_ celu celu_ clamp clamp.Tensor clamp.Tensor_out clamp.out clamp_ clamp_.Tensor clamp_max
        clamp_max.Tensor clamp_max.Tensor_out clamp_max.out clamp_max_ clamp_max_.Tensor clamp_min clamp_min.Tensor
        clamp_min.Tensor_out clamp_min.out clamp_min_ clamp_min_.Tensor clone conj_physical conj_physical.out
        conj_physical_ copysign.Scalar copysign.Scalar_out copysign.Tensor copysign.out cos cos.out cos_ cosh
        cosh.out cosh_ deg2rad deg2rad.out deg2rad_ digamma digamma.out digamma_ div.Scalar div.Tensor
        div.Tensor_mode div.out div.out_mode div_.Tensor div_.Tensor_mode elu elu_ eq.Scalar eq.Scalar_out eq.Tensor
        eq.Tensor_out equal erf erf.out erf_ erfc erfc.out erfc_ erfinv erfinv.out erfinv_ exp exp.out exp2 exp2.out
        exp2_ exp_ expm1 expm1.out expm1_ float_power.Scalar float_power.Scalar_out float_power.Tensor_Scalar
        float_power.Tensor_Scalar_out float_power.Tensor_Tensor float_power.Tensor_Tensor_out floor floor.out floor_
        fmax fmax.out fmin fmin.out fmod.Scalar fmod.Scalar_out fmod.Tensor fmod.Tensor_out fmod_.Scalar
        fmod_.Tensor frac frac.out frac_ frexp.Tensor frexp.Tensor_out gcd gcd.out ge.Scalar ge.Scalar_out ge.Tensor
        ge.Tensor_out gelu gelu_backward gt.Scalar gt.Scalar_out gt.Tensor gt.Tensor_out hardshrink hardsigmoid
        hardsigmoid_ hardtanh hardtanh_ heaviside heaviside.out hypot hypot.out hypot_ i0 i0.out i0_ igamma
        igamma.out igamma_ igammac igammac.out igammac_ isfinite isinf isnan isneginf isneginf.out isposinf
        isposinf.out lcm lcm.out ldexp.Tensor ldexp.out le.Scalar le.Scalar_out le.Tensor le.Tensor_out leaky_relu
        leaky_relu_ lerp.Scalar lerp.Scalar_out lerp.Tensor lerp.Tensor_out lerp_.Scalar lerp_.Tensor lgamma
        lgamma.out lgamma_ log log.out log10 log10.out log10_ log1p log1p.out log1p_ log2 log2.out log2_ log_
        logaddexp logaddexp.out logaddexp2 logaddexp2.out logical_and logical_and.out logical_and_ logical_not
        logical_not.out logical_not_ logical_or logical_or.out logical_or_ logical_xor logical_xor.out logical_xor_
        logit logit.out logit_ lt.Scalar lt.Scalar_out lt.Tensor lt.Tensor_out masked_fill.Scalar max.other max.out
        maximum maximum.out min.other min.out minimum minimum.out mish mul.Scalar mul.Tensor mul.out mul_.Tensor
        mvlgamma mvlgamma.out mvlgamma_ nan_to_num nan_to_num.out nan_to_num_ native_dropout_backward ne.Scalar
        ne.Scalar_out ne.Tensor ne.Tensor_out neg neg.out neg_ nextafter nextafter.out nextafter_ polygamma
        polygamma.out positive pow.Scalar pow.Scalar_out pow.Tensor_Scalar pow.Tensor_Scalar_out pow.Tensor_Tensor
        pow.Tensor_Tensor_out rad2deg rad2deg.out rad2deg_ reciprocal reciprocal.out reciprocal_ relu relu6 relu_
        remainder.Scalar remainder.Scalar_Tensor remainder.Scalar_out remainder.Tensor remainder.Tensor_out
        remainder_.Scalar remainder_.Tensor round round.decimals round.decimals_out round.out round_ round_.decimals
        rrelu rsqrt rsqrt.out rsqrt_ rsub.Scalar selu selu_ sgn sgn.out sgn_ sigmoid sigmoid.out sigmoid_
        sigmoid_backward sign sign.out sign_ signbit signbit.out silu silu.out silu_ silu_backward sin sin.out sin_
        sinc sinc.out sinc_ sinh sinh.out sinh_ softplus softshrink special_airy_ai special_airy_ai.out
        special_bessel_j0 special_bessel_j0.out special_bessel_j1 special_bessel_j1.out special_bessel_y0
        special_bessel_y0.out special_bessel_y1 special_bessel_y1.out special_chebyshev_polynomial_t
        special_chebyshev_polynomial_t.n_scalar special_chebyshev_polynomial_t.n_scalar_out
        special_chebyshev_polynomial_t.out special_chebyshev_polynomial_t.x_scalar
        special_chebyshev_polynomial_t.x_scalar_out special_chebyshev_polynomial_u
        special_chebyshev_polynomial_u.n_scalar special_chebyshev_polynomial_u.n_scalar_out
        special_chebyshev_polynomial_u.out special_chebyshev_polynomial_u.x_scalar
        special_chebyshev_polynomial_u.x_scalar_out special_chebyshev_polynomial_v
        special_chebyshev_polynomial_v.n_scalar special_chebyshev_polynomial_v.n_scalar_out
        special_chebyshev_polynomial_v.out special_chebyshev_polynomial_v.x_scalar
        special_chebyshev_polynomial_v.x_scalar_out special_chebyshev_polynomial_w
        special_chebyshev_polynomial_w.n_scalar special_chebyshev_polynomial_w.n_scalar_out
        special_chebyshev_polynomial_w.out special_chebyshev_polynomial_w.x_scalar
        special_chebyshev_polynomial_w.x_scalar_out special_entr special_entr.out special_erfcx special_erfcx.out
        special_hermite_polynomial_h special_hermite_polynomial_h.n_scalar special_hermite_polynomial_h.n_scalar_out
        special_hermite_polynomial_h.out special_hermite_polynomial_h.x_scalar
        special_hermite_polynomial_h.x_scalar_out special_hermite_polynomial_he
        special_hermite_polynomial_he.n_scalar special_hermite_polynomial_he.n_scalar_out
        special_hermite_polynomial_he.out special_hermite_polynomial_he.x_scalar
        special_hermite_polynomial_he.x_scalar_out special_i0e special_i0e.out special_i1 special_i1.out special_i1e
        special_i1e.out special_laguerre_polynomial_l special_laguerre_polynomial_l.n_scalar
        special_laguerre_polynomial_l.n_scalar_out special_laguerre_polynomial_l.out
        special_laguerre_polynomial_l.x_scalar special_laguerre_polynomial_l.x_scalar_out
        special_legendre_polynomial_p special_legendre_polynomial_p.n_scalar
        special_legendre_polynomial_p.n_scalar_out special_legendre_polynomial_p.out
        special_legendre_polynomial_p.x_scalar special_legendre_polynomial_p.x_scalar_out special_log_ndtr
        special_log_ndtr.out special_modified_bessel_i0 special_modified_bessel_i0.out special_modified_bessel_i1
        special_modified_bessel_i1.out special_modified_bessel_k0 special_modified_bessel_k0.out
        special_modified_bessel_k1 special_modified_bessel_k1.out special_ndtri special_ndtri.out
        special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k0.out special_scaled_modified_bessel_k1
        special_scaled_modified_bessel_k1.out special_shifted_chebyshev_polynomial_t
        special_shifted_chebyshev_polynomial_t.n_scalar special_shifted_chebyshev_polynomial_t.n_scalar_out
        special_shifted_chebyshev_polynomial_t.out special_shifted_chebyshev_polynomial_t.x_scalar
        special_shifted_chebyshev_polynomial_t.x_scalar_out special_shifted_chebyshev_polynomial_u
        special_shifted_chebyshev_polynomial_u.n_scalar special_shifted_chebyshev_polynomial_u.n_scalar_out
        special_shifted_chebyshev_polynomial_u.out special_shifted_chebyshev_polynomial_u.x_scalar
        special_shifted_chebyshev_polynomial_u.x_scalar_out special_shifted_chebyshev_polynomial_v
        special_shifted_chebyshev_polynomial_v.n_scalar special_shifted_chebyshev_polynomial_v.n_scalar_out
        special_shifted_chebyshev_polynomial_v.out special_shifted_chebyshev_polynomial_v.x_scalar
        special_shifted_chebyshev_polynomial_v.x_scalar_out special_shifted_chebyshev_polynomial_w
        special_shifted_chebyshev_polynomial_w.n_scalar special_shifted_chebyshev_polynomial_w.n_scalar_out
        special_shifted_chebyshev_polynomial_w.out special_shifted_chebyshev_polynomial_w.x_scalar
        special_shifted_chebyshev_polynomial_w.x_scalar_out special_spherical_bessel_j0
        special_spherical_bessel_j0.out special_xlog1py special_xlog1py.other_scalar
        special_xlog1py.other_scalar_out special_xlog1py.out special_xlog1py.self_scalar
        special_xlog1py.self_scalar_out special_zeta special_zeta.other_scalar special_zeta.other_scalar_out
        special_zeta.out special_zeta.self_scalar special_zeta.self_scalar_out sqrt sqrt.out sqrt_ square square.out
        square_ sub.Scalar sub.Tensor sub.out sub_.Tensor tan tan.out tan_ tanh tanh.out tanh_ tanh_backward
        threshold threshold_backward true_divide.Tensor trunc trunc.out trunc_ where.self xlogy.OutScalar_Other
        xlogy.OutScalar_Self xlogy.OutTensor xlogy.Scalar_Other xlogy.Scalar_Self xlogy.Tensor xlogy_.Tensor""",
    Tag.reduction: """
        all all.all_out all.dim all.dims all.dims_out all.out amax amax.out amin amin.out aminmax aminmax.out any
        any.all_out any.dim any.dims any.dims_out any.out argmax argmax.out argmin argmin.out count_nonzero
        count_nonzero.dim_IntList linalg_vector_norm linalg_vector_norm.out logsumexp logsumexp.out max max.dim
        max.dim_max max.unary_out mean mean.dim mean.dtype_out mean.out min min.dim min.dim_min min.unary_out nansum
        nansum.out norm.Scalar norm.ScalarOpt_dim prod prod.dim_int prod.int_out std std.correction
        std.correction_out std.dim std.out std_mean std_mean.correction std_mean.dim sum sum.IntList_out
        sum.dim_IntList var var.correction var.correction_out var.dim var.out var_mean var_mean.correction
        var_mean.dim""",
    Tag.nondeterministic_seeded: """
        _fused_sdp_choice _sample_dirichlet _scaled_dot_product_attention_math _scaled_dot_product_flash_attention
        _scaled_dot_product_flash_attention_for_cpu _standard_gamma alpha_dropout alpha_dropout_ bernoulli
        bernoulli.out bernoulli.p bernoulli_.Tensor bernoulli_.float binomial cauchy cauchy_ dropout dropout_
        exponential exponential_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_
        geometric geometric_ gru.data gru.input log_normal log_normal_ lstm.data lstm.input multinomial
        multinomial.out native_dropout normal.Tensor_Tensor normal.Tensor_Tensor_out normal.Tensor_float
        normal.Tensor_float_out normal.float_Tensor normal.float_Tensor_out normal.float_float
        normal.float_float_out normal_ normal_functional poisson rand rand.generator rand.generator_out rand.out
        rand_like rand_like.generator randint randint.generator randint.generator_out randint.low
        randint.low_generator randint.low_generator_out randint.low_out randint.out randint_like randint_like.Tensor
        randint_like.Tensor_generator randint_like.generator randint_like.low_dtype randint_like.low_generator_dtype
        randn randn.generator randn.generator_out randn.out randn_like randn_like.generator random random.from
        random.to random_ random_.from random_.to randperm randperm.generator randperm.generator_out randperm.out
        rnn_relu.data rnn_relu.input rnn_tanh.data rnn_tanh.input rrelu rrelu_ rrelu_with_noise rrelu_with_noise_
        rrelu_with_noise_functional scaled_dot_product_attention uniform uniform_""",
    Tag.dynamic_output_shape: """
        _ctc_loss _ctc_loss.Tensor _unique2 argwhere bincount index.Tensor linalg_lstsq linalg_lstsq.out
        masked_select masked_select.out nonzero nonzero.out one_hot repeat_interleave.Tensor unique_consecutive
        unique_dim""",
    Tag.data_dependent_output: """
        _local_scalar_dense allclose equal""",
    Tag.maybe_aliasing_or_mutating: """
        alpha_dropout atleast_1d atleast_2d atleast_3d batch_norm conj_physical dropout feature_alpha_dropout
        feature_dropout unsafe_chunk _batch_norm_impl_index""",
    Tag.inplace_view: """
        as_strided_ detach_ resize_ resize_as_ squeeze_ squeeze_.dim squeeze_.dims swapaxes_ swapdims_ t_ transpose_
        unsqueeze_""",
    Tag.view_copy: """
        alias_copy alias_copy.out as_strided_copy as_strided_copy.out detach_copy detach_copy.out diagonal_copy
        diagonal_copy.out expand_copy expand_copy.out lift_fresh_copy lift_fresh_copy.out narrow_copy permute_copy
        permute_copy.out select_copy.int
        select_copy.int_out slice_copy.Tensor slice_copy.Tensor_out slice_scatter slice_scatter.out
        split_copy.Tensor split_with_sizes_copy squeeze_copy squeeze_copy.dim squeeze_copy.dim_out squeeze_copy.dims
        squeeze_copy.dims_out squeeze_copy.out t_copy t_copy.out transpose_copy.int transpose_copy.int_out
        unbind_copy.int unfold_copy unfold_copy.out unsqueeze_copy unsqueeze_copy.out view_as_complex_copy
        view_as_complex_copy.out view_as_real_copy view_as_real_copy.out view_copy view_copy.dtype
        view_copy.dtype_out view_copy.out""",
    Tag.generated: """
        _amp_foreach_non_finite_check_and_unscale _amp_update_scale _batch_norm_with_update_functional _coalesced
        _foreach_zero _fused_adagrad _fused_adam _fused_adamw _fused_sgd _index_put_impl
        _native_batch_norm_legit_functional alias_copy.out as_strided_copy.out as_strided_scatter.out
        binary_cross_entropy_with_logits.out bitwise_and.Scalar_Tensor_out bitwise_left_shift.Scalar_Tensor_out
        bitwise_or.Scalar_Tensor_out bitwise_right_shift.Scalar_Tensor_out bitwise_xor.Scalar_Tensor_out
        bucketize.Scalar_out cauchy detach_copy.out diagonal_copy.out diagonal_scatter.out embedding.out
        embedding_dense_backward.out embedding_renorm expand_copy.out exponential geometric lift_fresh_copy.out
        log_normal permute_copy.out prod.out random random.from random.to relu.out resize resize_as
        rrelu_with_noise_functional select_copy.int_out select_scatter.out slice_copy.Tensor_out slice_scatter.out
        squeeze_copy.dim_out squeeze_copy.dims_out squeeze_copy.out sum.out t_copy.out transpose_copy.int_out
        unfold_copy.out uniform unsqueeze_copy.out view_as_complex_copy.out view_as_real_copy.out
        view_copy.dtype_out view_copy.out zero""",
}
_OPERATORS = {tag: frozenset(names.split()) for tag, names in _NAMES.items()}


def tags_of(schema):
    """The tags of an operator of aten, in the order of their numbers."""
    name = schema.full_name.removeprefix("aten::")
    tags = [tag for tag, names in _OPERATORS.items() if name in names] + [Tag.pt2_compliant_tag]
    tags += [Tag.inplace] * schema.is_inplace + [Tag.out] * schema.is_out
    return sorted(tags, key=int)
