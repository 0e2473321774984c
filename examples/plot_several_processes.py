"""
Training on several processes
=============================

A network learns road costs from routes. Every process takes a share of each batch and projects its
own predictions; PyTorch averages the gradients. Run by itself, the script is one process of one::

    torchrun --nproc-per-node 2 examples/plot_several_processes.py

The batches are the same however many share them, and so is the network, up to rounding.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.distributed as dist
from _picture import BLUE, caption, save
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import revealed as rv

BATCH, EPOCHS, SEEN = 64, 12, 512
rng = np.random.default_rng(3)
problem = rv.problems.grid_shortest_path(6, 6, directed="right-down")
Z = rng.standard_normal((SEEN + 400, 5))
roads = 1 + np.exp(0.5 * Z @ rng.random((5, problem.n_variables)))  # never shown to the learner
routes = problem.solve(roads).x
sets = rv.OptimalitySet(problem, routes[:SEEN], margin=1.0)  # once; sliced in training

# %%
# Torchrun says in the environment who is who. Without it, a group of one that talks to nobody.
alone = {"store": dist.HashStore(), "rank": 0, "world_size": 1}
dist.init_process_group("gloo", **({} if "RANK" in os.environ else alone))
rank, world = dist.get_rank(), dist.get_world_size()

# %%
# The sampler deals out sample numbers. They pick contexts and sets, and as ``index`` the
# multipliers of the last visit, where the next projection of that sample starts.
sampler = DistributedSampler(range(SEEN), seed=0)
loader = DataLoader(range(SEEN), batch_size=BATCH // world, sampler=sampler)
contexts = torch.from_numpy(Z)
torch.manual_seed(0)
layers = (torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, problem.n_variables))
net = torch.nn.Sequential(*layers).double()
shared = DistributedDataParallel(net)
loss_fn = rv.ProjectionLoss(problem, margin=1.0, threads=max(1, (os.cpu_count() or 1) // world))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

losses, misses = [], []
for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)  # another order in each epoch, the same on every process
    total = torch.zeros(())
    for i in loader:
        loss = loss_fn(shared(contexts[i]), sets[i], index=i)
        optimizer.zero_grad()
        loss.backward()  # here the processes wait for each other and average
        optimizer.step()
        total += loss.detach() / len(loader)
    dist.all_reduce(total)
    losses.append(float(total) / world)
    with torch.no_grad():
        chosen = problem.solve(net(contexts[SEEN:]).numpy()).x
    misses.append(1 - float((chosen == routes[SEEN:]).all(axis=1).mean()))
dist.destroy_process_group()

# %%
if rank == 0:
    print(f"{world} process(es): loss {losses[0]:.3f}, then {losses[-1]:.4f}")
    print(f"new contexts in which the route is not the one taken: {misses[-1]:.1%}")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axis, values in zip(axes, (losses, misses), strict=True):
        axis.plot(range(1, EPOCHS + 1), values, color=BLUE, lw=2)
        axis.set(xlabel="epoch", ylim=(0, None))
    caption(axes[0], "Loss", "half the squared distance, mean over the epoch")
    caption(axes[1], "Wrong routes", "share of 400 contexts never seen")
    save(figure, "several_processes")
