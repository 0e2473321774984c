"""What only the experiment on pictures needs: its parts, its claims, and its albums of samples.

parts    which methods are shown of a task
claims   what is claimed of them
albums   the samples in the folder `gallery`: pictures, decisions seen and predicted, costs
tiles    one sample as drawings for the page
poster   all samples and methods of a task in one figure on disk
"""
