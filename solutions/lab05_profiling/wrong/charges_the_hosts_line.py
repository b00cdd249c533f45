# exercise: name_the_pattern
# told: each pattern has its seconds, but not at the right lines


_right_charges = charges


def charges(spans):
    charged = _right_charges(spans)
    for began_s, ended_s, wait in gaps(spans):
        for span in spans if wait else ():
            if span["kind"] in ("python", "call"):
                pattern = "copy" if wait["name"] == "copy" else "synchronisation"
                piece_s = overlap_s(span, [[began_s, ended_s]])
                charged[pattern, wait["line"]] -= piece_s
                charged[pattern, span["line"]] = charged.get((pattern, span["line"]), 0.0) + piece_s
    return charged
