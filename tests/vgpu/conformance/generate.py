#!/usr/bin/env python3
"""Writes the conformance cases: for each instruction <name>.ptx, one kernel a form, and <name>.cases, the operands and
expected results.

usage: generate.py SEED FOLDER     the cases into FOLDER
       generate.py SEED            the forms' instructions, one a line, to standard output

A kernel is  form_<n>(inputs, outputs, lanes): thread i reads operand k at inputs + (i * operands + k) * 8 and writes
result k at outputs + (i * results + k) * 8, each as wide as its register. The lanes of a warp that `lanes` leaves out
do not execute the instruction: their result is 0xA5 in each byte, and true of a predicate.

The .cases file, all little-endian: "VGPUCASE", then u64 number of forms, and of each form:
    u64 bytes of the text, the text (the instructions)
    u64 cases, a multiple of 32; u64 operands; u64 results
    of each result: u64 bits of its register; u64 order: 0 bits, otherwise the format: 1 f16, 2 bf16, 3 f32, 4 f64
    of each case: the operands, u64 each; of each result: u64 low, u64 high
A result is right if it equals low where low == high; where they differ it has to lie between them: as unsigned bits, or
in the order of the format's numbers, -0 below +0; between two NaNs lie all NaNs.
"""

import random
import struct
import sys
from array import array
from pathlib import Path

import cases
from cases_memory import CONSTANT_WORDS, SLOT_BYTES
from forms import REGISTER_BITS, draw_operands
from reference_float import Range
from reference_integer import ANY

CASES = 384
DRAWS_MAX = 20 * CASES  # of which CASES have to be ones that the ISA speaks of

ORDERS = {"bits": 0, "f16": 1, "bf16": 2, "f32": 3, "f64": 4}


def expectation(result):
    if isinstance(result, Range):
        return result.low, result.high
    return (0, 2**64 - 1) if result is ANY else (result, result)


def draw_cases(form, rng):
    """The numbers of all cases in the order of the file."""
    numbers = array("Q")
    count = 0
    for _, operands in zip(range(DRAWS_MAX), draw_operands(form.inputs, CASES, rng)):
        results = form.run(*operands)
        # A Range is a tuple, too.
        if not isinstance(results, tuple) or isinstance(results, Range):
            results = (results,)
        if any(result is None for result in results):
            continue
        numbers.extend(operands)
        for result in results:
            numbers.extend(expectation(result))
        count += 1
        if count == CASES:
            return numbers
    raise RuntimeError(f"{form.text}: the ISA leaves too many of the operands open")


def write_cases(forms, path, rng):
    with open(path, "wb") as out:
        out.write(b"VGPUCASE" + struct.pack("<Q", len(forms)))
        for form in forms:
            text = form.text.encode()
            out.write(struct.pack("<Q", len(text)) + text)
            out.write(struct.pack("<3Q", CASES, len(form.inputs), len(form.outputs)))
            for output in form.outputs:
                out.write(struct.pack("<2Q", REGISTER_BITS[output.register], ORDERS[output.order]))
            numbers = draw_cases(form, rng)
            if sys.byteorder == "big":
                numbers.byteswap()
            numbers.tofile(out)


HEADER = """.version 8.3
.target sm_90
.address_size 64
"""

VARIABLES = f"""
.global .align 16 .b8 global_bytes[{SLOT_BYTES * CASES}];
.const .align 8 .b32 constant_words[16] = {{{", ".join(map(str, CONSTANT_WORDS))}}};
"""

BEGIN = """
.visible .entry form_{number}(.param .u64 inputs, .param .u64 outputs, .param .u32 lanes)
{{
    .reg .pred %run;
    .reg .b8 %c<4>;
    .reg .b32 %lanes, %thread, %t<4>;
    .reg .b64 %in, %out;
    .reg .b128 %q0;
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    ld.param.u32 %lanes, [lanes];
    mov.u32 %t0, %ctaid.x;
    mov.u32 %t1, %ntid.x;
    mov.u32 %t2, %tid.x;
    mad.lo.u32 %thread, %t0, %t1, %t2;
    mad.wide.u32 %in, %thread, {inputs_bytes}, %in;
    mad.wide.u32 %out, %thread, {outputs_bytes}, %out;
    mov.u32 %t3, %laneid;
    shr.u32 %lanes, %lanes, %t3;
    and.b32 %lanes, %lanes, 1;
    setp.ne.u32 %run, %lanes, 0;
"""


def load_operand(index, register):
    """The lines that declare and load %a<index>."""
    yield f".reg .{register} %a{index};"
    if register == "pred":
        yield f".reg .b32 %b{index};"
        yield f"ld.global.b32 %b{index}, [%in + {8 * index}];"
        yield f"setp.ne.b32 %a{index}, %b{index}, 0;"
    else:
        yield f"ld.global.{register} %a{index}, [%in + {8 * index}];"


def prepare_result(index, register):
    """The lines that declare %d<index> and set what inactive lanes leave in it."""
    yield f".reg .{register} %d{index};"
    if register == "pred":
        yield f"setp.eq.b32 %d{index}, %thread, %thread;"
    elif register == "b8":
        yield f"cvt.u8.u32 %d{index}, 0xA5;"
    else:
        yield f"mov.{register} %d{index}, 0x{'A5' * (REGISTER_BITS[register] // 8)};"


def store_result(index, register):
    if register == "pred":
        yield f"selp.b32 %t0, 1, 0, %d{index};"
        yield f"st.global.b32 [%out + {8 * index}], %t0;"
    else:
        yield f"st.global.{register} [%out + {8 * index}], %d{index};"


def kernel(number, form):
    lines = []
    for index, operand in enumerate(form.inputs):
        lines += load_operand(index, operand.register)
    for index, output in enumerate(form.outputs):
        lines += prepare_result(index, output.register)
    lines += form.setup.splitlines()
    lines += [f"@%run {line}" for line in form.text.splitlines()]
    for index, output in enumerate(form.outputs):
        lines += store_result(index, output.register)
    begin = BEGIN.format(number=number, inputs_bytes=8 * len(form.inputs), outputs_bytes=8 * len(form.outputs))
    return begin + "".join(f"    {line}\n" for line in lines) + "    ret;\n}\n"


def main(arguments):
    if len(arguments) not in (1, 2) or not arguments[0].isdigit():
        sys.exit(__doc__)
    rng = random.Random(int(arguments[0]))
    groups = {}
    for form in cases.all_forms(rng):
        groups.setdefault(form.group, []).append(form)
    if len(arguments) == 1:
        print("\n".join(form.text for forms in groups.values() for form in forms))
        return
    folder = Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    for stale in [*folder.glob("*.ptx"), *folder.glob("*.cases")]:
        stale.unlink()
    for name, forms in groups.items():
        kernels = "".join(kernel(number, form) for number, form in enumerate(forms))
        (folder / f"{name}.ptx").write_text(HEADER + VARIABLES + kernels)
        write_cases(forms, folder / f"{name}.cases", rng)


if __name__ == "__main__":
    main(sys.argv[1:])
