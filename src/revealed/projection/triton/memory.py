# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""Words that the threads of a program exchange, in the multiprocessor's shared memory.

A number stored to global memory is read back from the L2 cache, some 300 cycles later; shared
memory takes 30. Triton has no name for it, so a few lines of PTX do: one block of shared memory
for a program, addressed by byte. Without SHARED (the interpreter, or vectors too long to fit)
the same functions work on global scratch, addressed by element.
"""

import triton
import triton.language as tl

LIMIT = 46 * 1024
"""Bytes to declare at most: a kernel has 48 KB, and Triton's reductions want some."""


def declare(words: int) -> str:
    """The PTX that sets aside `words` numbers and gives their address."""
    return f".shared .align 16 .b8 revealed_words[{8 * words}]; mov.u32 $0, revealed_words;"


@triton.jit
def address(scratch, PTX: tl.constexpr, SHARED: tl.constexpr):
    """Where the words are: a shared address, or the pointer given. Call it once, at the top."""
    if SHARED:
        zero = tl.full([1], 0, tl.int32)
        here = tl.inline_asm_elementwise(PTX, "=r,r", [zero], dtype=tl.int32, is_pure=False, pack=1)
        return tl.sum(here, axis=0)
    else:
        return scratch


@triton.jit
def after(words, count, SHARED: tl.constexpr):
    """The address `count` numbers further on."""
    if SHARED:
        return words + count * 8
    else:
        return words + count


@triton.jit
def peek(words, at, SHARED: tl.constexpr):
    """The numbers at positions `at`."""
    if SHARED:
        return tl.inline_asm_elementwise(
            "ld.shared.f64 $0, [$1];", "=d,r", [words + at * 8],
            dtype=tl.float64, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        return tl.load(words + at)


@triton.jit
def poke(words, at, value, mask, SHARED: tl.constexpr):
    """Write `value` at positions `at` where `mask`."""
    if SHARED:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.u32 p, $3, 0; @p st.shared.f64 [$1], $2; mov.u32 $0, 0; }",
            "=r,r,d,r", [words + at * 8, value, mask.to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        tl.store(words + at, value, mask=mask)


@triton.jit
def peek_as(words, at, KIND: tl.constexpr, SHARED: tl.constexpr):
    """`peek` for numbers that were written by `poke_as`."""
    if SHARED and KIND == tl.float32:
        return tl.inline_asm_elementwise(
            "ld.shared.f32 $0, [$1];", "=f,r", [words + at * 8],
            dtype=tl.float32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        return peek(words, at, SHARED).to(KIND)


@triton.jit
def poke_as(words, at, value, mask, KIND: tl.constexpr, SHARED: tl.constexpr):
    """`poke` for numbers of another precision, each in the place of a full one."""
    if SHARED and KIND == tl.float32:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.u32 p, $3, 0; @p st.shared.f32 [$1], $2; mov.u32 $0, 0; }",
            "=r,r,f,r", [words + at * 8, value, mask.to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        poke(words, at, value.to(tl.float64), mask, SHARED)
