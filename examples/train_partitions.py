"""A network trained on folders of Parquet, by any number of processes, from where it was stopped.

    torchrun --nproc-per-node 2 examples/train_partitions.py 'days/*.parquet' --checkpoint state.pt

Each process reads only its share of the partitions. The checkpoint holds the network and the
optimizer, which are the same on all processes, so another number of them may go on from it.
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import revealed as rv
from revealed.fit import PartitionBatches

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("days", help="Parquet files with columns z1, z2, ... and x1, x2, ...")
parser.add_argument("--grid", type=int, default=5)
parser.add_argument("--features", type=int, default=5)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--checkpoint", type=Path, required=True)
args = parser.parse_args()

alone = {"store": dist.HashStore(), "rank": 0, "world_size": 1}
dist.init_process_group("gloo", **({} if "RANK" in os.environ else alone))
rank, ranks = dist.get_rank(), dist.get_world_size()

problem = rv.problems.grid_shortest_path(args.grid, args.grid, directed="right-down")
data = rv.datasets.Partitions.from_parquet(
    problem,
    args.days,
    args.days,
    features=[f"z{k + 1}" for k in range(args.features)],
    variables=[f"x{k + 1}" for k in range(problem.n_variables)],
    partitions=16,  # at least as many as processes
)
batches = PartitionBatches(data, batch_size=64, rank=rank, ranks=ranks)

torch.manual_seed(0)
layers = (torch.nn.Linear(args.features, 32), torch.nn.ReLU())
net = torch.nn.Sequential(*layers, torch.nn.Linear(32, problem.n_variables)).double()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
begin = 0
if args.checkpoint.exists():
    found = torch.load(args.checkpoint, weights_only=True)
    net.load_state_dict(found["net"])
    optimizer.load_state_dict(found["optimizer"])
    begin = found["epoch"]

shared = DistributedDataParallel(net)
loss_fn = rv.ProjectionLoss(problem, margin=1.0, threads=1)
for epoch in range(begin, args.epochs):
    total = torch.zeros(2)
    with shared.join():  # processes have different numbers of batches
        for z, sets in batches.epoch(epoch):
            loss = loss_fn(shared(torch.from_numpy(z)), sets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += torch.tensor([float(loss.detach()) * len(z), len(z)])
    dist.all_reduce(total)
    if rank == 0:
        print(f"epoch {epoch}, {ranks} processes: loss {total[0] / total[1]:.4f}", flush=True)
        state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
        draft = args.checkpoint.with_suffix(".new")
        torch.save(state, draft)
        draft.replace(args.checkpoint)
dist.destroy_process_group()
