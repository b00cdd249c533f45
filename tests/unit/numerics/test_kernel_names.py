"""Kernel names as profilers print them, from Volta to Blackwell."""

from __future__ import annotations

import json

import pytest

from edl_labs.numerics import tensor_core_kernel

# name, uses tensor cores, matched by the deck's pattern
ON_TENSOR_CORES = [
    ("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", True),
    ("volta_h884gemm_64x64_ldg8_nn", True),
    ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", True),
    ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_nn", True),
    ("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", True),
    ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4>(Params)", True),
    ("cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1", True),
    ("cutlass_80_tensorop_d884gemm_128x128_16x3_nn_align1", False),
    (
        "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_execute_kernel__5x_cudnn",
        False,
    ),
    (
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        False,
    ),
    ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT", False),
    ("nvjet_hsh_256x128_64x4_2x1_v_bz_coopA_TNN", False),
    ("nvjet_sm100_tst_64x16_64x16_2x4_2cta_h_bz_splitK_TNT", False),
    ("nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN", False),
    (
        "cutlass3x_sm100_tensorop_gemm_bf16_bf16_f32_bf16_bf16_128x128x64_0x0x1_0_tnn_align8_1sm",
        True,
    ),  # by its cutlass3x
    ("cutlass3x_sm100_bstensorop_s256x128x64gemm_block_scaled_ue4m3xf4_ue4m3", True),
    ("cutlass3x_sm120_bstensorop_s16x8x32gemm_ue8m0xe4m3_ue8m0xe4m3_f32_void_e5m2_128x128x128_1x1x1_0_tnt", True),
    (
        "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm10<cutlass::gemm::kernel::GemmUniversal<"
        "CollectiveMma<MainloopSm100ArrayTmaUmmaWarpSpecialized<3, 8, 2>, cute::SM100_MMA_F16BF16_SS<bfloat16_t>>>>>",
        False,
    ),
    ("void cutlass::device_kernel<cute::MMA_Atom<cute::SM90_64x128x16_F32BF16BF16_SS<(cute::GMMA::Major)0>>>", False),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x64x128_4x1x1_cga1x1x1_kernel0_0", False),
    ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, cutlass::half_t>>", False),
    ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)", False),
    ("fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvSlidingOrChunkedCausal", False),
]
ON_CUDA_CORES = [
    "ampere_sgemm_128x64_nn",
    "volta_sgemm_128x64_nn",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>",
    "cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x128x16_1x1x1_3_tnn_align1_bias_f32_relu",
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false>",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true, true, false>",
    "fmha_cutlassF_f32_notaligned_64x64_rf_sm50",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
    "void (anonymous namespace)::softmax_warp_forward<c10::Half, float, float, 10, false, false>",
    "triton_poi_fused_add_gelu_0",
    "Memcpy HtoD (Pinned -> Device)",
]


@pytest.mark.parametrize(("name", "deck"), ON_TENSOR_CORES)
def test_tensor_core_kernels_of_every_generation_are_known(name: str, deck: bool) -> None:
    kind = tensor_core_kernel(name)

    assert (True, deck) == (kind.tensor_core, kind.deck_says)


@pytest.mark.parametrize("name", ON_CUDA_CORES)
def test_kernels_of_the_cuda_cores_are_told_apart(name: str) -> None:
    assert tensor_core_kernel(name).tensor_core is False


@pytest.mark.parametrize("name", ["triton_tem_fused_mm_0", "_matmul_kernel", "my_own_gemm"])
def test_a_name_that_does_not_tell_is_not_guessed(name: str) -> None:
    assert tensor_core_kernel(name).tensor_core is None


def test_hopper_and_blackwell_are_what_the_deck_misses() -> None:
    kinds = [tensor_core_kernel(name) for name in ("nvjet_tst_128x256", "ampere_fp16_s16816gemm_fp16")]

    assert [(True, False), (True, True)] == [(kind.tensor_core, kind.deck_says) for kind in kinds]
    assert 1 == json.loads(json.dumps(kinds[0].to_json()))["schema"]


@pytest.mark.parametrize(
    ("name", "architecture", "dtype"),
    [
        ("nvjet_sm100_qqtst_128x256", "Blackwell", "fp8"),
        ("nvjet_hsh_256x128", "Hopper", "fp16"),
        ("ampere_bf16_s16816gemm_bf16_256x128", "Ampere", "bf16"),
        ("volta_h884gemm_64x64", "Volta", "fp16"),
    ],
)
def test_generation_and_dtype_are_read_where_the_name_has_them(name: str, architecture: str, dtype: str) -> None:
    kind = tensor_core_kernel(name)

    assert (architecture, dtype) == (kind.architecture, kind.dtype)


def test_a_letter_before_a_digit_takes_the_deck_in() -> None:
    simt = "cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x128x16_1x1x1_3_tnn_align1_bias_f32_relu"

    assert (False, True) == (tensor_core_kernel(simt).tensor_core, tensor_core_kernel(simt).deck_says)
