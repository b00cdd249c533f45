"""The process that imports the heavy libraries once and forks students' kernels into sandboxes.

It holds one thread and no secrets: whatever is in its memory, students' code can read.
"""
