# exercise: name_the_pattern
# told: a copy is charged while a kernel runs


_right_charges = charges


def charges(spans):
    charged = _right_charges(spans)
    kernels = joined([span for span in spans if span["kind"] == "kernel"])
    for span in spans:
        if span["kind"] == "copy":
            charged["copy", span["line"]] += overlap_s(span, kernels)
    return charged
