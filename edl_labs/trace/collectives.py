"""Which device work communicates: known from the collective that launched it, metadata, or the function's own name.

Graph replays have neither annotation nor metadata, so that names count: the function's own name, template arguments,
parameters and return type cut, read as words. Nothing is looked for inside a longer name: `warp_all_reduce_softmax`
and a template argument called `broadcast_kernel` compute.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from edl_labs.trace.trace_table import NUMBER, Trace

# What torch, NCCL and its NVTX ranges call a collective on the host: what is launched inside communicates.
_CALL = re.compile(
    r"(nccl|rccl|gloo|mpi|ucc|xccl|hccl|cncl|mccl|oneccl):|(nccl|rccl)[A-Z]|_?c10d(_functional)?::|record_param_comms"
)
# Operators that a collective runs on its way, such as the copy of a functional collective's input, compute.
_OPERATOR = re.compile(r"(aten|prims|inductor)::")

# Libraries that do nothing else, by the beginning of their kernels' names (NCCL 2.4 to 2.28, RCCL, MSCCL, NVSHMEM,
# rocSHMEM, oneCCL, Ascend's and Habana's HCCL, Transformer Engine's user buffers).
_VERB = "(All|Reduce|Broadcast|SendRecv|Gather|Scatter|Generic)"
_LIBRARY = re.compile(
    rf"(nccl|rccl)((Symk?|Sym)?(Dev)?(Kernel|Func(tion)?)(Debug)?_{_VERB}|{_VERB}\w*Kernel)"
    r"|mscclp?p?[A-Z_]|(nvshmem[ixs]?|roc_?shmem|ishmem[ix]?|oneccl|hccl|hcom)_|Hccl[A-Z]|k?userbuffers_"
)
# Namespaces that hold nothing but collectives.
_NAMESPACE = re.compile(
    r"(deep_ep::(intranode|internode|internode_ll)|c10d::(symmetric_memory|intra_node_comm|nvshmem_extension)|mscclpp"
    r"|nvshmem\w*|rocshmem|ishmem|quickreduce|hybrid_ep|mori|pplx|(\w+::)*(ar_fusion|moe_comm|moe_alltoall"
    r"|trtllm_\w*allreduce\w*|trtllm_mnnvl\w*))::"
)
_COMPUTES = re.compile(r"gemm|matmul|attention|attn|softmax|conv\d|layer_?norm", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CORE = (
    r"(all_?reduces?|all_?gathers?(_?v)?|reduce_?scatters?(_?v)?|all_?to_?alls?(_?v(dev)?)?|allto?allv?|send_?recv"
    r"|cross_device_reduce|collective_permute|a_2_a|multimem_broadcast|lamport_style_one_shot_all_reduce)"
)
# Words that may come before and after: where the data go, by which algorithm, in which type, fused with what.
_BEFORE = (
    "multimem|multi|mem|one|two|shot|oneshot|twoshot|stage|ring|tree|hierarchical|hybrid|cube|mesh|cross|device|intra"
    "|inter|node|intranode|internode|custom|quick|fast|lamport|symm|symmetric|memory|nvls|nvlink|ll|simple|double"
    "|binary|p2p|p|peer|gpu|ipc|ub|mnnvl|trtllm|vllm|sgl|sglang|fbgemm|moe|nccl|kernel|push|pull|low|latency|inplace"
    "|ccl|sycl|aiter|car|d|copy|engine"
)
_AFTER = (
    f"{_BEFORE}|kernels|naive|fusion|fused|add|residual|rms|rmsnorm|norm|quant|fp|bf|f|half|float|bfloat|int|uint|sum"
    "|max|min|avg|prod|sync|async|in|out|of|place|outofplace|collnet|direct|chain|send|recv|put|get|write|read|store"
    "|load|oop|rr|rw|rs|bidirectional|prototype|opt|small|large|medium|packed|vec|vectorized|start|done|v|lastdim"
    "|butterfly|with|signal|signals|barrier|hdim|t|u|impl|prepare|metadata|dim|tma|dispatch|combine|tensor|into|base|coalesced|nbi|wait|flag|flags"
)
_COLLECTIVE = re.compile(rf"((({_BEFORE})|\d+)_)*{_CORE}(_(({_AFTER})|\d+))*")
_MANGLED = re.compile(r"_Z(TS)?(N[KrV]*)?L?")
_PART = re.compile(r"(St)?(\d+)")
_UNNAMED = re.compile(r"\(anonymous namespace\)::|<unnamed>::|\{lambda[^}]*\}|\[clone [^]]*\]|\.kd$")


def function_name(kernel: str) -> str:
    """A kernel's qualified name, as its source has it: return type, template arguments and parameters cut.

    >>> function_name("void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*, int)")
    'vllm::cross_device_reduce_1stage'
    >>> function_name("_ZN4vllm26cross_device_reduce_1stageI6__halfLi8EEEvPNS_8RankDataE")
    'vllm::cross_device_reduce_1stage'
    """
    if found := _MANGLED.match(kernel):
        return _demangled(kernel, found.end(), most=None if found[2] else 1) or kernel
    kept, depth = [], 0
    for character in _UNNAMED.sub("", kernel):
        if character == "(" and not depth:
            break
        depth += (character == "<") - (character == ">" and depth > 0)
        if not depth and character != ">":
            kept.append(character)
    words = "".join(kept).split()
    return words[-1] if words else kernel


def _demangled(kernel: str, at: int, *, most: int | None) -> str:
    """At most so many names of a mangled name, each with its length before it, up to the first template argument."""
    parts: list[str] = []
    while len(parts) != most and (found := _PART.match(kernel, at)):
        at = found.end() + int(found[2])
        parts.append(kernel[found.end() : at])
    return "::".join(part for part in parts if not part.startswith("_GLOBAL_"))


def is_collective(kernel: str) -> bool:
    """Whether a kernel communicates, by its function's own name.

    >>> is_collective("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    True
    >>> is_collective("void softmax_warp_all_reduce<at::native::broadcast_kernel_launcher>(float*)")
    False
    """
    name = function_name(kernel)
    last = name.rpartition("::")[2]
    if _COLLECTIVE.fullmatch("_".join(_WORD.findall(last)).lower()):
        return True
    return bool(_LIBRARY.match(last) or _NAMESPACE.match(name)) and not _COMPUTES.search(last)


def is_host_collective(name: str) -> bool:
    """Whether an annotation of the host is a collective's."""
    return bool(_CALL.match(name))


def with_communication(trace: Trace) -> Trace:
    """The trace of one process, kernels launched inside a collective's call as communication, whatever their names."""
    named = [bool(_CALL.match(name)) for name in trace.names]
    if not any(named):
        return trace
    computes = [bool(_OPERATOR.match(name)) for name in trace.names]
    inside = list[bool]()
    # What is around an event comes before it in the table.
    for name, above in zip(trace.name.tolist(), trace.parent.tolist(), strict=True):
        inside.append(named[name] or (above >= 0 and inside[above] and not computes[name]))
    calls = trace.select("launch", "runtime")
    links = trace.link[calls[np.array(inside)[calls]]]
    kind = trace.kind.copy()
    kind[(kind == NUMBER["kernel"]) & (trace.link >= 0) & np.isin(trace.link, links)] = NUMBER["communication"]
    return replace(trace, kind=kind)
