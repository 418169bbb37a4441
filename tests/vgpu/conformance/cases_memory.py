"""The forms of loads, stores and atomic operations. Every thread has a slot of its own in each space, so that what it
stores is what it loads, whatever the others do."""

import reference_float
import reference_integer as ref
from cases_float import opcode
from cases_integer import register
from forms import Form, Output, float_input, integer_input, pair_input, predicate_input, range_input
from formats import BF16, F16, F32, F64
from reference_integer import IntegerType, mask

SLOT_BYTES = 32
CONSTANT_WORDS = [(i * 0x9E3779B1 + 0x7F4A7C15) % 2**32 for i in range(16)]

INTEGERS = ("b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
TYPES = INTEGERS + ("f32", "f64")

# %m: the address of the thread's slot; the threads of a block are 64.
SETUP = {
    "global": ".reg .b64 %m;\nmov.u64 %m, global_bytes;\nmad.wide.u32 %m, %thread, 32, %m;",
    "shared": ".reg .b32 %m;\n.shared .align 16 .b8 shared_bytes[2048];\n"
    "mov.u32 %m, shared_bytes;\nmov.u32 %t0, %tid.x;\nmad.lo.u32 %m, %t0, 32, %m;",
    "local": ".reg .b64 %m;\n.local .align 16 .b8 local_bytes[32];\nmov.u64 %m, local_bytes;",
}


def generic_setup(space):
    """%m becomes a generic address."""
    if space != "shared":
        return f"{SETUP[space]}\ncvta.{space}.u64 %m, %m;"
    narrow = SETUP["shared"].replace("%m", "%n")
    return f"{narrow}\n.reg .b64 %m;\ncvt.u64.u32 %m, %n;\ncvta.shared.u64 %m, %m;"


# The words after ld and st, and the setup.
SPACES = [(space, SETUP[space]) for space in SETUP] + [("", generic_setup(space)) for space in SETUP]


def wide_registers(type_name):
    """The registers that a load may extend to and a store may take the low bits of."""
    bits = int(type_name[1:])
    return [f"b{width}" for width in (8, 16, 32, 64) if width >= bits]


def loaded(type_name, held):
    """What a load leaves in a register of `held` bits: extended by the sign of signed types, with zeros otherwise."""
    t = IntegerType(type_name.replace("f", "u"))
    return lambda a: t.number(a) & mask(int(held[1:]))


def load_store_forms(rng):
    for space, setup in SPACES:
        for t in TYPES:
            registers = [register(t)] if t[0] == "f" else wide_registers(t)
            for held in registers:
                offset = rng.choice([0, 8, 16, 24])
                text = f"{opcode('st', space, t)} [%m+{offset}], %a0;\n{opcode('ld', space, t)} %d0, [%m+{offset}];"
                source = integer_input(register(t), held)
                yield Form("ld", text, [Output(held)], [source], loaded(t, held), setup)
    text = "st.global.u32 [%m], %a0;\nadd.u64 %m, %m, 24;\nld.global.u32 %d0, [%m+-24];"
    yield Form("ld", text, [Output("b32")], [integer_input("b32")], lambda a: a, SETUP["global"])


def vector_forms():
    for space, setup in SPACES:
        for t in TYPES:
            for count in (2, 4):
                bits = int(t[1:])
                if count * bits > 128:
                    continue
                held = "b16" if bits == 8 else register(t)
                results = ", ".join(f"%d{i}" for i in range(count))
                sources = ", ".join(f"%a{i}" for i in range(count))
                text = (
                    f"{opcode('st', space, f'v{count}', t)} [%m], {{{sources}}};\n"
                    f"{opcode('ld', space, f'v{count}', t)} {{{results}}}, [%m];"
                )
                run = lambda *a, one=loaded(t, held): tuple(map(one, a))  # noqa: E731
                inputs = [integer_input(register(t), held)] * count
                yield Form("ld", text, [Output(held)] * count, inputs, run, setup)


# Stores and loads that differ in how they are ordered and cached, which one thread cannot see.
QUALIFIERS = (
    ("st.volatile.global.u32", "ld.volatile.global.u32", "global"),
    ("st.volatile.shared.u32", "ld.volatile.shared.u32", "shared"),
    ("st.volatile.u32", "ld.volatile.u32", ""),
    ("st.relaxed.cta.global.u32", "ld.relaxed.cta.global.u32", "global"),
    ("st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32", "global"),
    ("st.relaxed.sys.global.u32", "ld.relaxed.sys.global.u32", "global"),
    ("st.relaxed.gpu.u32", "ld.relaxed.gpu.u32", ""),
    ("st.release.cta.global.u32", "ld.acquire.cta.global.u32", "global"),
    ("st.release.gpu.global.u32", "ld.acquire.gpu.global.u32", "global"),
    ("st.release.sys.global.u32", "ld.acquire.sys.global.u32", "global"),
    ("st.release.cta.shared.u32", "ld.acquire.cta.shared.u32", "shared"),
    ("st.release.gpu.u32", "ld.acquire.gpu.u32", ""),
    ("st.global.wb.u32", "ld.global.ca.u32", "global"),
    ("st.global.cg.u32", "ld.global.cg.u32", "global"),
    ("st.global.cs.u32", "ld.global.cs.u32", "global"),
    ("st.global.wt.u32", "ld.global.cv.u32", "global"),
    ("st.global.u32", "ld.global.lu.u32", "global"),
    ("st.weak.global.u32", "ld.weak.global.u32", "global"),
    ("st.global.L1::evict_last.u32", "ld.global.L1::evict_last.u32", "global"),
    ("st.global.L1::no_allocate.u32", "ld.global.L1::no_allocate.u32", "global"),
    ("st.global.u32", "ld.global.L2::128B.u32", "global"),
    ("st.shared::cta.u32", "ld.shared::cta.u32", "shared"),
)

FENCES = (
    "membar.cta", "membar.gl", "membar.sys", "fence.acq_rel.cta", "fence.acq_rel.gpu", "fence.acq_rel.sys",
    "fence.sc.cta", "fence.sc.gpu", "fence.sc.sys", "fence.proxy.async", "fence.proxy.async.shared::cta",
    "fence.proxy.alias",
)  # fmt: skip


def qualifier_forms():
    for store, load, space in QUALIFIERS:
        setup = SETUP[space] if space else generic_setup("global")
        text = f"{store} [%m], %a0;\n{load} %d0, [%m];"
        yield Form("ld", text, [Output("b32")], [integer_input("b32")], lambda a: a, setup)
    for fence in FENCES:
        text = f"st.global.u32 [%m], %a0;\n{fence};\nld.global.u32 %d0, [%m];"
        yield Form("fence", text, [Output("b32")], [integer_input("b32")], lambda a: a, SETUP["global"])
    for hint in ("nanosleep.u32 20", "nanosleep.u32 %t3", "griddepcontrol.wait", "griddepcontrol.launch_dependents",
                 "pmevent 3", "pmevent.mask 5"):  # fmt: skip
        text = f"st.global.u32 [%m], %a0;\n{hint};\nld.global.u32 %d0, [%m];"
        yield Form("hint", text, [Output("b32")], [integer_input("b32")], lambda a: a, SETUP["global"])
    prefetches = ("prefetch.global.L1", "prefetch.global.L2", "prefetch.L1", "prefetch.L2", "prefetchu.L1")
    for prefetch in prefetches:
        setup = SETUP["global"] if "global" in prefetch else generic_setup("global")
        text = f"{prefetch} [%m];\nst.u32 [%m], %a0;\nld.u32 %d0, [%m];"
        yield Form("prefetch", text, [Output("b32")], [integer_input("b32")], lambda a: a, setup)
    # The operands are never written, so they may be read as what does not change.
    for load in ("ld.global.nc", "ld.global.ca.nc", "ld.global.nc.L1::no_allocate", "ldu.global"):
        for t in ("u32", "f32", "u64", "s16"):
            text = f"{load}.{t} %d0, [%in];"
            output, source = [Output(register(t))], [integer_input(register(t))]
            yield Form("ld", text, output, source, lambda a: a)
        text = f"{load}.v2.u32 {{%d0, %d1}}, [%in];"
        run = lambda a: (a & mask(32), a >> 32)  # noqa: E731
        yield Form("ld", text, [Output("b32")] * 2, [integer_input("b64")], run)


def constant_forms():
    """A table that the module initialises, by index."""
    setup = ".reg .b64 %m;\nmov.u64 %m, constant_words;\nmad.wide.u32 %m, %a0, 4, %m;"
    generic = setup + "\ncvta.const.u64 %m, %m;"
    for t in ("b32", "u32", "f32"):
        for space, how in (("const", setup), ("", generic)):
            text = f"{opcode('ld', space, t)} %d0, [%m];"
            yield Form("ld", text, [Output("b32")], [range_input(0, 15)], lambda i: CONSTANT_WORDS[i], how)
    for t, bits in (("u8", 8), ("s8", 8), ("s16", 16)):
        text = f"ld.const.{t} %d0, [%m];"
        run = lambda i, t=t, bits=bits: loaded(t, "b32")(CONSTANT_WORDS[i] & mask(bits))  # noqa: E731
        yield Form("ld", text, [Output("b32")], [range_input(0, 15)], run, setup)
    text = "ld.const.v2.u32 {%d0, %d1}, [constant_words+8];"
    yield Form("ld", text, [Output("b32")] * 2, [range_input(0, 15)], lambda i: tuple(CONSTANT_WORDS[2:4]))


# ---- address spaces ----


def space_forms():
    """isspacep of addresses in all the spaces, and cvta there and back."""
    kinds = ("global", "shared", "local", "const")
    setup = ".reg .b64 %g, %l, %c, %s;\n" + SETUP["shared"] + "\ncvt.u64.u32 %s, %m;\ncvta.shared.u64 %s, %s;"
    setup += "\n.local .align 16 .b8 local_bytes[32];\nmov.u64 %l, local_bytes;\ncvta.local.u64 %l, %l;"
    setup += "\nmov.u64 %g, global_bytes;\nmad.wide.u32 %g, %thread, 32, %g;\ncvta.global.u64 %g, %g;"
    setup += "\nmov.u64 %c, constant_words;\ncvta.const.u64 %c, %c;"
    dummy = [integer_input("b32")]
    for asked in kinds + ("shared::cta",):
        # Whether constants are in global memory, too, is the machine's affair.
        of = [kind for kind in kinds if (asked, kind) != ("global", "const")]
        text = "\n".join(f"isspacep.{asked} %d{i}, %{kind[0]};" for i, kind in enumerate(of))
        answers = tuple(int(asked.split(":")[0] == kind) for kind in of)
        yield Form("isspacep", text, [Output("pred")] * len(of), dummy, lambda a, answers=answers: answers, setup)
    for kind in kinds:
        # The address within the space leads to the same bytes.
        back = f"cvta.to.{kind}.u64 %l, %{kind[0]};\nld.{kind}.u32 %d1, [%l];"
        text = f"ld.u32 %d0, [%{kind[0]}];\n{back}\nxor.b32 %d0, %d0, %d1;"
        write = "" if kind == "const" else f"\nst.u32 [%{kind[0]}], %t1;"
        text = text.replace("%d0, %d0, %d1", "%d2, %d0, %d1")
        fill = f"\nmov.u32 %t1, 77;{write}"
        word = CONSTANT_WORDS[0] if kind == "const" else 77
        run = lambda a, word=word: (word, word, 0)  # noqa: E731
        yield Form("cvta", text, [Output("b32")] * 3, dummy, run, setup + fill)
    narrow = "\n.reg .b32 %q;\n.reg .b64 %w;"
    text = "cvta.to.shared.u64 %w, %s;\ncvt.u32.u64 %q, %w;\nst.shared.u32 [%q], %a0;\nld.u32 %d0, [%s];"
    yield Form("cvta", text, [Output("b32")], dummy, lambda a: a, setup + narrow)


# ---- atomic operations ----


def wrap_increment(old, limit):
    return 0 if old >= limit else old + 1


def wrap_decrement(old, limit):
    return limit if old == 0 or old > limit else old - 1


def integer_atomics():
    """Operation, type and what becomes of the memory."""
    for t in ("u32", "s32", "u64"):
        yield "add", t, ref.arithmetic(t, lambda a, b: a + b)
    for t in ("u32", "s32", "u64", "s64"):
        yield "min", t, ref.arithmetic(t, min)
        yield "max", t, ref.arithmetic(t, max)
    for t in ("b32", "b64"):
        for name, compute in ref.BOOLEAN.items():
            yield name, t, compute
        yield "exch", t, lambda a, b: b
    yield "inc", "u32", wrap_increment
    yield "dec", "u32", wrap_decrement


ATOMIC_SPACES = (
    ("global", SETUP["global"]),
    ("shared", SETUP["shared"]),
    ("", generic_setup("global")),
    ("", generic_setup("shared")),
)
ATOMIC_ORDERS = (
    "relaxed.cta", "relaxed.gpu", "relaxed.sys", "acquire.gpu", "release.gpu", "acq_rel.gpu", "acq_rel.cta",
)  # fmt: skip


def atomic_form(name, modifiers, space, setup, t, run, source, suffix=""):
    """The old value, and what is in memory afterwards."""
    bits = register(t)
    store, load = opcode("st", space, bits), opcode("ld", space, bits)
    if name == "red":
        text = f"{store} [%m], %a0;\n{opcode('red', *modifiers, t)} [%m], %a1;\n{load} %d0, [%m];"
        return Form("red", text, [Output(bits, suffix or "bits")], [source] * 2, run, setup)
    text = f"{store} [%m], %a0;\n{opcode('atom', *modifiers, t)} %d0, [%m], %a1;\n{load} %d1, [%m];"
    both = lambda a, b: None if run(a, b) is None else (a, run(a, b))  # noqa: E731
    return Form("atom", text, [Output(bits), Output(bits, suffix or "bits")], [source] * 2, both, setup)


def atomic_forms(rng):
    for operation, t, run in integer_atomics():
        for space, setup in ATOMIC_SPACES:
            yield atomic_form("atom", (space, operation), space, setup, t, run, integer_input(register(t)))
            if operation != "exch":
                yield atomic_form("red", (space, operation), space, setup, t, run, integer_input(register(t)))
        order = rng.choice(ATOMIC_ORDERS)
        space, setup = rng.choice(ATOMIC_SPACES)
        yield atomic_form("atom", (order, space, operation), space, setup, t, run, integer_input(register(t)))
    for order in ATOMIC_ORDERS:
        add = ref.arithmetic("u32", lambda a, b: a + b)
        for name in ("atom", "red"):
            if name == "atom" or not order.startswith(("acquire", "acq_rel")):
                modifiers, source = (order, "global", "add"), integer_input("b32")
                yield atomic_form(name, modifiers, "global", SETUP["global"], "u32", add, source)


def float_add(f, ftz=False):
    """Which NaN it gives is not said."""
    add = reference_float.arithmetic(f, "add", ftz=ftz)

    def run(a, b):
        result = add(a, b)
        return reference_float.any_nan(f) if isinstance(result, int) and f.is_nan(result) else result

    return run


def float_atomic_forms():
    """Of f32 the ISA says that subnormal numbers are flushed in global memory, and not in shared memory."""
    for space, setup in ATOMIC_SPACES:
        is_global = "shared" not in setup
        for name in ("atom", "red"):
            for f in (F32, F64):
                run = float_add(f, f is F32 and is_global)
                yield atomic_form(name, (space, "add"), space, setup, f.name, run, float_input(f), f.name)
            for f in (F16, BF16):
                run = float_add(f)
                modifiers = (space, "add", "noftz")
                yield atomic_form(name, modifiers, space, setup, f.name, run, float_input(f), f.name)
                yield pair_atomic_form(name, modifiers, space, setup, f)


def pair_atomic_form(name, modifiers, space, setup, f):
    run = float_add(f)
    word = f"{opcode(name, *modifiers, f.name + 'x2')} "
    word += "[%m], %a1;" if name == "red" else "%t1, [%m], %a1;"
    text = f"{opcode('st', space, 'b32')} [%m], %a0;\n{word}\n{opcode('ld', space, 'b32')} %t0, [%m];"
    text += "\nmov.b32 {%d0, %d1}, %t0;"
    both = lambda a, b: (run(a & 0xFFFF, b & 0xFFFF), run(a >> 16, b >> 16))  # noqa: E731
    return Form(name, text, [Output("b16", f.name)] * 2, [pair_input(f)] * 2, both, setup)


def compare_and_swap_forms():
    for space, setup in ATOMIC_SPACES:
        for t in ("b16", "b32", "b64"):
            text = (
                f"{opcode('st', space, t)} [%m], %a0;\n"
                f"{opcode('atom', space, 'cas', t)} %d0, [%m], %a1, %a2;\n"
                f"{opcode('ld', space, t)} %d1, [%m];"
            )
            run = lambda a, b, c: (a, c if a == b else a)  # noqa: E731
            few = integer_input(t)
            few.draw = lambda rng, edges=few.edges: rng.choice(edges[:3])  # so that they are often equal
            yield Form("atom", text, [Output(t)] * 2, [few, few, integer_input(t)], run, setup)
        pair = "mov.b128 %q0, {%a1, %a2};\n"
        text = (
            f"{opcode('st', space, 'v2', 'b64')} [%m], {{%a0, %a0}};\n{pair}"
            f"{opcode('atom', space, 'exch', 'b128')} %q1, [%m], %q0;\n"
            f"mov.b128 {{%d0, %d1}}, %q1;\n{opcode('ld', space, 'v2', 'b64')} {{%d2, %d3}}, [%m];"
        )
        run = lambda a, b, c: (a, a, b, c)  # noqa: E731
        declare = setup + "\n.reg .b128 %q1;"
        yield Form("atom", text, [Output("b64")] * 4, [integer_input("b64")] * 3, run, declare)
        yield compare_and_swap_wide(space, setup)


def compare_and_swap_wide(space, setup):
    """128 bits, of which either half may differ."""
    text = (
        f"{opcode('st', space, 'v2', 'b64')} [%m], {{%a0, %a1}};\n"
        "mov.b128 %q0, {%a0, %a2};\nmov.b128 %q1, {%a3, %a3};\n"
        f"{opcode('atom', space, 'cas', 'b128')} %q2, [%m], %q0, %q1;\n"
        f"mov.b128 {{%d0, %d1}}, %q2;\n{opcode('ld', space, 'v2', 'b64')} {{%d2, %d3}}, [%m];"
    )
    run = lambda a, b, c, d: (a, b, d, d) if b == c else (a, b, a, b)  # noqa: E731
    few = integer_input("b64")
    few.draw = lambda rng: rng.choice(few.edges[:2])
    few.edges = few.edges[:3]
    inputs = [integer_input("b64"), few, few, integer_input("b64")]
    return Form("atom", text, [Output("b64")] * 4, inputs, run, setup + "\n.reg .b128 %q1, %q2;")


VECTOR_ATOMICS = ((F32, "", 2), (F32, "", 4), (F16, "noftz", 2), (F16, "noftz", 8), (BF16, "noftz", 4))


def vector_atomic_forms():
    """Each element is added on its own; the words of the type may come before the operation or after it."""
    for f, noftz, count in VECTOR_ATOMICS:
        run = float_add(f, f is F32)
        bits = f"b{f.bits}"
        size = f.bits // 8
        values = ", ".join(f"%a{i}" for i in range(count))
        for modifiers in (("global", "add", noftz, f"v{count}", f.name), ("global", f"v{count}", f.name, "add", noftz)):
            stores = "".join(f"st.global.{bits} [%m+{i * size}], %a{count};\n" for i in range(count))
            loads = "".join(f"\nld.global.{bits} %d{i}, [%m+{i * size}];" for i in range(count))
            both = lambda *a, run=run: every(tuple(run(a[-1], x) for x in a[:-1]))  # noqa: E731
            outputs, inputs = [Output(bits, f.name)] * count, [float_input(f)] * (count + 1)
            text = f"{stores}{opcode('red', *modifiers)} [%m], {{{values}}};{loads}"
            yield Form("red", text, outputs, inputs, both, SETUP["global"])
            olds = ", ".join(f"%e{i}" for i in range(count))
            text = f"{stores}{opcode('atom', *modifiers)} {{{olds}}}, [%m], {{{values}}};{loads}"
            text += f"\nmov.{bits} %d{count}, %e{count - 1};"
            old = lambda *a, both=both: None if both(*a) is None else (*both(*a), a[-1])  # noqa: E731
            declare = f"{SETUP['global']}\n.reg .{bits} %e<8>;"
            yield Form("atom", text, [*outputs, Output(bits)], inputs, old, declare)


def every(results):
    return None if any(result is None for result in results) else results


# ---- asynchronous copies ----


def asynchronous_forms():
    """From the thread's slot in global memory to the one in shared memory."""
    setup = SETUP["shared"] + "\n.reg .b64 %g;\nmov.u64 %g, global_bytes;\nmad.wide.u32 %g, %thread, 32, %g;"
    words = [integer_input("b64")] * 2
    fill = "st.global.v2.b64 [%g], {%a0, %a1};\nst.shared.v2.b64 [%m], {%a1, %a0};\n"
    read = "ld.shared.v2.b64 {%d0, %d1}, [%m];"
    waits = ("cp.async.commit_group;\ncp.async.wait_group 0;", "cp.async.wait_all;")
    for wait in waits:
        for cache, sizes in (("ca", (4, 8, 16)), ("cg", (16,))):
            for size in sizes:
                text = f"{fill}cp.async.{cache}.shared.global [%m], [%g], {size};\n{wait}\n{read}"
                run = lambda a, b, size=size: copied(a, b, size, size)  # noqa: E731
                yield Form("cp_async", text, [Output("b64")] * 2, words, run, setup)
    for words_after, size in (("ca.shared.global.L2::64B", 8), ("cg.shared.global.L2::128B", 16)):
        text = f"{fill}cp.async.{words_after} [%m], [%g], {size};\ncp.async.wait_all;\n{read}"
        run = lambda a, b, size=size: copied(a, b, size, size)  # noqa: E731
        yield Form("cp_async", text, [Output("b64")] * 2, words, run, setup)
    # With a predicate that says to ignore the source.
    for words_after in ("ca.shared.global", "ca.shared.global.L2::256B"):
        text = f"{fill}cp.async.{words_after} [%m], [%g], 16, %a2;\ncp.async.wait_all;\n{read}"
        run = lambda a, b, ignored: copied(a, b, 16, 0 if ignored else 16)  # noqa: E731
        yield Form("cp_async", text, [Output("b64")] * 2, words + [predicate_input()], run, setup)
    text = f"{fill}cp.async.ca.shared.global [%m], [%g], 16, %a2;\ncp.async.wait_all;\n{read}"
    run = lambda a, b, size: copied(a, b, 16, size)  # noqa: E731
    yield Form("cp_async", text, [Output("b64")] * 2, words + [range_input(0, 16)], run, setup)


def copied(a, b, bytes_written, bytes_read):
    """The slot held (b, a); `bytes_written` become those of (a, b), or zero from `bytes_read` on."""
    before, source = a << 64 | b, b << 64 | a
    written, read = mask(8 * bytes_written), mask(8 * bytes_read)
    result = before & ~written | source & read & written
    return result & mask(64), result >> 64


def forms(rng):
    yield from load_store_forms(rng)
    yield from vector_forms()
    yield from qualifier_forms()
    yield from constant_forms()
    yield from space_forms()
    yield from atomic_forms(rng)
    yield from float_atomic_forms()
    yield from compare_and_swap_forms()
    yield from vector_atomic_forms()
    yield from asynchronous_forms()
