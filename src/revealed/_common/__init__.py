"""What every part of the library shares, and no part of which knows any other.

arrays, checks     numpy, torch and lists in; the sentences that refuse what does not fit
device             tensors on a GPU, without importing torch
rows, affine       sparse rows and affine maps, one for each instance
conic, polish      the one door to Clarabel
compiled           how kernels are compiled and kept
disk, words        files that are complete or not there; counts in words
"""
