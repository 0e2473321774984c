"""Triton's interpreter, which runs the kernels on a machine without a GPU."""

from __future__ import annotations

from typing import Any


def fix_interpreter() -> None:
    """Let Triton's interpreter read numbers off arrays of one entry, which numpy 2.4 refuses."""
    from triton.runtime import interpreter  # pyright: ignore[reportMissingImports]

    original = interpreter._patch_lang_tensor

    def patched(tensor: type, scope: Any) -> None:
        original(tensor, scope)

        def truth(self) -> bool:
            data = self.handle.data
            return bool(data.item()) if data.size == 1 else True

        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())  # pyright: ignore
        scope.set_attr(tensor, "__bool__", truth)  # pyright: ignore

    interpreter._patch_lang_tensor = patched
