"""All generated forms."""

import cases_convert
import cases_float
import cases_integer
import cases_memory
import cases_select


def all_forms(rng):
    for module in (cases_integer, cases_float, cases_select, cases_convert, cases_memory):
        yield from module.forms(rng)
