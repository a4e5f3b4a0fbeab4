"""The filter's program, run by a small machine of its own: also for the architecture that the tests do not run on."""

from __future__ import annotations

import errno
import struct

import pytest

from cicada.corpus.readers.confinement import filter_code

ALLOW, KILL = 0x7FFF_0000, 0x8000_0000
REFUSE = 0x0005_0000 | errno.EPERM
X32 = 0x4000_0000
X86_64, AARCH64, I386 = 0xC000_003E, 0xC000_00B7, 0x4000_0003
ALLOWED = {
    # from arch/x86/entry/syscalls/syscall_64.tbl: read write close mmap mprotect munmap brk rt_sigreturn mremap madvise
    # getpid getrusage futex restart_syscall clock_gettime exit_group getrandom
    "x86_64": {0, 1, 3, 9, 10, 11, 12, 15, 25, 28, 39, 98, 202, 219, 228, 231, 318},
    # the same, from include/uapi/asm-generic/unistd.h
    "aarch64": {63, 64, 57, 222, 226, 215, 214, 139, 216, 233, 172, 165, 98, 128, 113, 94, 278},
}
ARCHITECTURES = {"x86_64": X86_64, "aarch64": AARCH64}


def _answer(code: bytes, arch: int, call: int) -> int:
    """What a classic BPF program answers to a system call."""
    data = struct.pack("=II", call, arch)
    steps = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    at = held = 0
    while True:
        operation, if_so, if_not, value = steps[at]
        at += 1
        match operation:
            case 0x20:
                (held,) = struct.unpack_from("=I", data, value)
            case 0x15:
                at += if_so if held == value else if_not
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"no instruction of a filter: {operation:#x}")


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_the_calls_of_computing_are_allowed_and_all_others_refused(machine: str) -> None:
    code, arch = filter_code(machine), ARCHITECTURES[machine]
    answers = {call: _answer(code, arch, call) for call in range(1024)}
    assert {call for call, answer in answers.items() if answer == ALLOW} == ALLOWED[machine]
    assert set(answers.values()) == {ALLOW, REFUSE}


@pytest.mark.parametrize("call", [0, 1, 59, 520])
def test_no_call_of_the_x32_abi_is_allowed(call: int) -> None:
    assert _answer(filter_code("x86_64"), X86_64, X32 | call) == REFUSE


@pytest.mark.parametrize(("machine", "other"), [("x86_64", I386), ("x86_64", AARCH64), ("aarch64", X86_64)])
def test_a_call_for_another_architecture_kills(machine: str, other: int) -> None:
    assert {_answer(filter_code(machine), other, call) for call in range(512)} == {KILL}
