"""Finds the functions of CUDA's runtime whose calls are traced, and writes how each is entered.

    entry_points.py INCLUDE FUNCTIONS OUTPUT

INCLUDE is the toolkit's folder of headers, FUNCTIONS a file that names the runtime's functions, one a line. Traced are
those that CUPTI has a callback id for and that return an error code. OUTPUT/cudart_renames.h gives each the name
vgpu_<name>, under which the stand-in implements it; OUTPUT/cudart_entries.inc has a line for each:

    ENTRY(cudaMalloc, v3020, (void **devPtr, size_t size), (devPtr, size))
    ENTRY_PLAIN(cudaDeviceSynchronize, v3020)                                  without parameters
"""

import pathlib
import re
import sys


def read_parameters(text):
    """{"cudaMalloc_v3020": [("void **devPtr", "devPtr"), ...]}, from the structs that hold calls' parameters."""
    found = {}
    for name, body in re.findall(r"typedef struct (\w+)_params_st \{(.*?)\}", text, re.S):
        fields = [" ".join(field.split()) for field in body.split(";") if field.strip()]
        found[name] = [(field, re.search(r"(\w+)$", field).group(1)) for field in fields]
    return found


def write_if_new(path, text):
    """Leaves a file that has the text as it is, so that nothing is compiled again for it."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_entries(include, functions, output):
    ids = re.findall(r"CUPTI_RUNTIME_TRACE_CBID_((?:cuda)\w+)_(v\d+)\b", (include / "cupti_runtime_cbid.h").read_text())
    parameters = read_parameters((include / "generated_cuda_runtime_api_meta.h").read_text())
    header = (include / "cuda_runtime_api.h").read_text()
    fallible = set(re.findall(r"\bcudaError_t\s+CUDARTAPI(?:_CDECL)?\s+(\w+)\(", header))
    plain = set(re.findall(r"\bcudaError_t\s+CUDARTAPI(?:_CDECL)?\s+(\w+)\(void\)", header))

    renames, entries = [], []
    for name in functions:
        base = re.sub(r"_pt[sd][sz]$", "", name)
        versions = sorted((v for n, v in ids if n == name), key=lambda v: int(v[1:]), reverse=True)
        known = [v for v in versions if f"{name}_{v}" in parameters]
        if base not in fallible or not versions or not (known or base in plain):
            continue
        renames.append(f"#define {name} vgpu_{name}\n")
        if known:
            fields = parameters[f"{name}_{known[0]}"]
            declared, named = ", ".join(f for f, _ in fields), ", ".join(n for _, n in fields)
            entries.append(f"ENTRY({name}, {known[0]}, ({declared}), ({named}))\n")
        else:
            entries.append(f"ENTRY_PLAIN({name}, {versions[0]})\n")
    write_if_new(output / "cudart_renames.h", "// Made by entry_points.py.\n" + "".join(renames))
    write_if_new(output / "cudart_entries.inc", "".join(entries))


if __name__ == "__main__":
    write_entries(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text().split(), pathlib.Path(sys.argv[3]))
