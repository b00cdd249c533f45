"""What Triton's compiler says of a source, without a GPU."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

HEAD = "import triton\nimport triton.language as tl\n\n\n"


def module_of(folder: Path, source: str, name: str) -> Any:
    """A Python module of kernels: Triton reads their text from a file."""
    path = folder / f"{name}.py"
    path.write_text(HEAD + source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiler_refuses(folder: Path, source: str, parameters: dict[str, Any], name: str) -> str:
    """Why `triton.compile` refuses the function `kernel` of a source; empty where it accepts it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = module_of(folder, source, name).kernel
    signature = {key: "constexpr" if isinstance(kind, int) else kind for key, kind in parameters.items()}
    constants = {(index,): kind for index, kind in enumerate(parameters.values()) if isinstance(kind, int)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            triton.compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 90, 32))
    except Exception as error:  # the compiler's errors have no common class
        return f"{type(error).__name__}: {error}".strip() or "error"
    return ""
