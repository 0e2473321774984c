"""`revealed explore`: look at a model sample by sample, in the browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

import numpy as np

from ..._common.words import count
from ...errors import InputError
from ..store import FittedModel, Samples, load_model
from .cleaning import cleaned
from .dossier import dossier_for
from .options import whole
from .reading import reading_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed explore`."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder written by revealed fit")
    parser.add_argument(
        "--contexts", type=Path, metavar="FILE", help="other samples than those kept in the model"
    )
    parser.add_argument("--decisions", type=Path, metavar="FILE", help="what was decided on these")
    parser.add_argument("--id", metavar="COLUMN", help="column by which both tables are matched")
    parser.add_argument("--port", type=whole, default=0, help="of the local server (any free one)")
    parser.add_argument(
        "--no-browser", action="store_true", help="only print the address, open nothing"
    )


def run(args: argparse.Namespace) -> int:
    """Serve the page until interrupted."""
    from ..explorer import Explorer, serve

    model = load_model(args.model)
    samples = samples_of(model, args)
    server = serve(Explorer(model, samples), args.port)
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    shown = count(len(samples), "sample")
    print(f"{shown} of {model.plan.name} at {address} (Ctrl+C ends)", flush=True)
    if not args.no_browser:
        webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        server.server_close()
    return 0


def samples_of(model: FittedModel, args: argparse.Namespace) -> Samples:
    """Those of the tables that are named, or those kept in the model."""
    if (args.contexts is None) != (args.decisions is None):
        raise InputError("Give --contexts and --decisions together, or neither.")
    if args.contexts is not None:
        how = reading_for(model.training, None)
        read = cleaned(dossier_for(model, args.contexts, args.decisions, args.id, how), how).dossier
        names = tuple(read.sample(b) for b in range(len(read)))
        new = np.ones(len(read), int)
        return Samples(names, read.contexts, read.decisions, new, read.own_limits)
    if model.samples is None:
        raise InputError(
            f"{args.model} holds no samples (it was fitted with --keep 0); give --contexts and "
            "--decisions."
        )
    return model.samples
