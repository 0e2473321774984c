"""Answers of a GPU beside those of the CPU, by one command each, on a machine without pytest.

projection   `python -m revealed_experiments.device.projection --large --netlib FOLDER`
oracles      `python -m revealed_experiments.device.oracles --large`
interpreter  Triton's interpreter, which stands in for a GPU
"""
