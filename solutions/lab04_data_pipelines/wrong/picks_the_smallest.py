# exercise: storage_format
# told: is not the cheapest format


def pick_format(forms, access, disk):
    return min(forms, key=lambda form: form["sample_bytes"])["name"]
