"""The steps of `revealed bench routes`: choose a loss, learn, fit the rivals, judge them all.

Every model comes twice: with the named features alone, whose coefficients make a table, and with a
cost of its own for every link besides, shrunk by a ridge that validation routes choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from revealed.datasets.routes import RoadNetwork, Routes

from .command import LENGTH, NAMED, OURS, PATH_SIZE, RECURSIVE, SAMPLED
from .errors import Errors, bootstrap
from .features import HUNDRED_METERS, MoveFeatures, move_features, with_own_costs
from .logit import LogitFit, RecursiveLogit, sample_routes
from .ours import Fit, Setting, fit_projection, start_of
from .pathsize import PathSizeLogit, choice_sets, most_probable
from .scores import FLOOR, Judge, Score, gains, with_interval

VALIDATION_SHARE = 0.25
RIDGES = (1e-3, 1e-4, 1e-5)
"""On standardized features in our loss, links' own costs among them."""
LOGIT_RIDGES = (1e-1, 1e-2, 1e-3, 1e-4)


class Study:
    """One training and one test table, and what the methods make of them."""

    setting: Setting
    ridge: float
    logit_ridge: float
    fit: Fit
    fit_own: Fit
    errors: Errors
    recursive: LogitFit
    recursive_own: LogitFit
    path_size: np.ndarray
    path_size_own: np.ndarray
    scores: dict[str, Score]

    def __init__(
        self,
        network: RoadNetwork,
        train: Routes,
        test: Routes,
        *,
        tuning: int = 1500,
        draws: int = 20,
        seed: int = 0,
        threads: int | None = None,
        quick: bool = False,
        say: Callable[[str], Any] = print,
    ) -> None:
        self.network, self.train, self.test = network, train, test
        self.features = move_features(network)
        self.features_own = with_own_costs(self.features, network)
        self._options: dict[str, Any] = {"max_iter": 2 if quick else 500, "threads": threads}
        self._logit_steps, self._rounds = (3, 2) if quick else (300, 15)
        self._say, self._draws = say, 2 if quick else draws
        order = np.random.default_rng(seed).permutation(len(train))
        held = max(1, int(VALIDATION_SHARE * len(train)))
        self._valid, self._rest = train[order[:held]], train[order[held:]]
        self._tuning = train[order[held : held + tuning]]
        self.judge_of_test = Judge(test)
        self.tried: list[dict[str, Any]] = []

    def describe(self) -> dict[str, Any]:
        """Sizes of what was read."""
        trips = set(zip(*_ends(self.train), strict=True))
        seen = np.mean([pair in trips for pair in zip(*_ends(self.test), strict=True)])
        return {
            "links": self.network.n_links,
            "moves": self.network.n_moves,
            "train": _size(self.train),
            "test": _size(self.test),
            "validation": len(self._valid),
            "tuning": len(self._tuning),
            "test_ends_in_training": float(seen),
        }

    # --- choices, on validation routes -----------------------------------------------------------

    def choose(self, settings: Sequence[Setting]) -> None:
        """Loss and ridge: the best convex and the best bounded loss on a few routes go on, each
        with links' own costs, to the rest of the routes."""
        judge = Judge(self._valid)
        found = {
            setting: self._note(
                judge,
                setting.label,
                self.features,
                fit_projection(self._tuning, self.features, setting, **self._options).coef,
            )
            for setting in settings
        }
        finals: dict[Setting, float] = {}
        for bounded in (False, True):
            group = [setting for setting in settings if (setting.power == "bounded") == bounded]
            if group:
                finals |= self._choose_ridge(judge, max(group, key=found.__getitem__))
        best = max(finals, key=finals.__getitem__)
        self.setting, self.ridge = replace(best, ridge=0.0), best.ridge

    def _choose_ridge(self, judge: Judge, setting: Setting) -> dict[Setting, float]:
        """Validation scores of a loss with each ridge, fitted to all routes but those."""
        coef = fit_projection(self._rest, self.features, setting, **self._options).coef
        label = f"{setting.label}; {len(self._rest):,} routes"
        self._note(judge, label, self.features, coef)
        found = {}
        for ridge in RIDGES:
            whole = replace(setting, ridge=ridge)
            coef = fit_projection(self._rest, self.features_own, whole, **self._options).coef
            text = f"{label}, own costs, ridge {ridge:g}"
            found[whole] = self._note(judge, text, self.features_own, coef)
        return found

    def choose_recursive(self) -> None:
        """The ridge of links' own costs in the recursive logit."""
        judge, found = Judge(self._valid), []
        first = self._fit_recursive(self._rest, self.features, start_of(self.features))
        coef = first.coef
        for ridge in LOGIT_RIDGES:
            coef = self._fit_recursive(self._rest, self.features_own, coef, ridge).coef
            label = f"recursive logit, own costs, ridge {ridge:g}"
            found.append(self._note(judge, label, self.features_own, coef / coef[0]))
        self.logit_ridge = LOGIT_RIDGES[int(np.argmax(found))]

    def _note(self, judge: Judge, label: str, features: MoveFeatures, coef: np.ndarray) -> float:
        means = judge.score(features.values @ coef).means()
        self._say(f"{label}: links {means['links']:.4f}, exact {means['exact']:.4f}")
        self.tried.append({"setting": label} | means)
        return means["links"] + means["exact"]

    # --- fits, to all training routes ------------------------------------------------------------

    def learn(self) -> None:
        """Ours, with the chosen loss and ridge."""
        self.fit = fit_projection(self.train, self.features, self.setting, **self._options)
        self.fit_own = fit_projection(
            self.train,
            self.features_own,
            replace(self.setting, ridge=self.ridge),
            **self._options,
        )

    def estimate_errors(self) -> None:
        """Standard errors of the coefficients of named features."""
        self.errors = bootstrap(
            self.fit, self.train, self.features, self.setting,
            draws=self._draws, size=len(self._tuning), **self._options,
        )  # fmt: skip

    def fit_recursive(self) -> None:
        """The recursive logit, by maximum likelihood."""
        self.recursive = self._fit_recursive(self.train, self.features, start_of(self.features))
        self.recursive_own = self._fit_recursive(
            self.train, self.features_own, self.recursive.coef, self.logit_ridge
        )

    def _fit_recursive(
        self, routes: Routes, features: MoveFeatures, start: np.ndarray, ridge: float = 0.0
    ) -> LogitFit:
        start = np.pad(start, (0, len(features.names) - len(start)))
        if start[0] == 1.0:  # not yet fitted: costs so large that walks have a finite sum
            start[features.column("link")] = 1.5
        model = RecursiveLogit(routes, features)
        return model.fit(start, ridge=ridge, max_iter=self._logit_steps)

    def fit_path_size(self) -> None:
        """The path-size logit, by maximum likelihood; its ridge is that of the recursive logit."""
        sets = choice_sets(Judge(self.train), self.train, self.features, rounds=self._rounds)
        start = np.append(0.3 * start_of(self.features), 0.0)
        self.path_size = PathSizeLogit(sets, self.features).fit(start, max_iter=self._logit_steps)
        start = np.insert(self.path_size, len(start) - 1, np.zeros(self.network.n_links))
        model = PathSizeLogit(sets, self.features_own, ridge=self.logit_ridge)
        self.path_size_own = model.fit(start, max_iter=self._logit_steps)

    # --- the test table --------------------------------------------------------------------------

    def judge(self) -> None:
        """Score all methods on the test routes."""
        judge, named, own = self.judge_of_test, self.features, self.features_own
        recursive = own.values @ self.recursive_own.coef
        moves, n_links = self.network.moves, self.network.n_links
        sets = choice_sets(judge, self.test, named, rounds=self._rounds, seed=1)
        likely = most_probable(sets, named, self.path_size)
        likely_own = most_probable(sets, own, self.path_size_own)
        self.scores = {
            OURS: judge.score(own.values @ self.fit_own.coef),
            RECURSIVE: judge.score(recursive / self.recursive_own.coef[0]),
            PATH_SIZE: judge.compare(likely_own[judge.trip]),
            SAMPLED: judge.compare(
                sample_routes(moves, n_links, recursive, judge.ends, judge.trip)
            ),
            OURS + NAMED: judge.score(named.values @ self.fit.coef),
            RECURSIVE + NAMED: judge.score(
                named.values @ self.recursive.coef / self.recursive.coef[0]
            ),
            PATH_SIZE + NAMED: judge.compare(likely[judge.trip]),
            LENGTH: judge.score(named.values[:, 0]),
        }

    def results(self) -> dict[str, Any]:
        """Everything found, as plain values."""
        return {
            "tried": self.tried,
            "ours": {
                "setting": self.setting.label,
                "ridge": self.ridge,
                "loss": [self.fit.value, self.fit_own.value],
                "evaluations": self.fit.evaluations + self.fit_own.evaluations,
                "projections": self.fit.projections + self.fit_own.projections,
                "converged": self.fit.converged and self.fit_own.converged,
                "unsolved": self.fit.unsolved + self.fit_own.unsolved,
                "bootstrap": {"draws": self.errors.draws, "size": self.errors.size},
                "moves_at_the_floor": int((self.own_costs() < FLOOR).sum()),
                "spread_of_own_costs": float(self.fit_own.coef[self.features_own.own].std()),
            },
            "recursive": {
                "ridge": self.logit_ridge,
                "log_likelihood": [
                    self.recursive.log_likelihood,
                    self.recursive_own.log_likelihood,
                ],
                "converged": self.recursive.converged and self.recursive_own.converged,
            },
            "coefficients": self._coefficients(),
            "scores": {name: with_interval(score) for name, score in self.scores.items()},
            "gains": self._gains(),
        }

    def own_costs(self) -> np.ndarray:
        """(M,) learned costs of all moves, in 100 m."""
        return self.features_own.values @ self.fit_own.coef

    def _gains(self) -> dict[str, Any]:
        ours, named = self.scores[OURS], self.scores[OURS + NAMED]
        rivals = (LENGTH, RECURSIVE, PATH_SIZE, SAMPLED)
        return {rival: gains(ours, self.scores[rival]) for rival in rivals} | {
            rival + NAMED: gains(named, self.scores[rival + NAMED])
            for rival in (RECURSIVE, PATH_SIZE)
        }

    def _coefficients(self) -> list[dict[str, Any]]:
        """In meters: what a feature is worth in length."""
        fit, errors, other = self.fit, self.errors, self.recursive
        assert other.standard_error is not None
        return [
            {
                "feature": name,
                "unit": "100 m" if self.features.per_length[k] else "move",
                "meters": HUNDRED_METERS * fit.coef[k],
                "standard_error": HUNDRED_METERS * errors.standard_error[k],
                "low": HUNDRED_METERS * errors.low[k],
                "high": HUNDRED_METERS * errors.high[k],
                "with_own_costs": HUNDRED_METERS * self.fit_own.coef[k],
                "recursive_meters": HUNDRED_METERS * other.coef[k] / other.coef[0],
                "recursive_coef": other.coef[k],
                "recursive_standard_error": other.standard_error[k],
                "path_size_meters": HUNDRED_METERS * self.path_size[k] / self.path_size[0],
            }
            for k, name in enumerate(self.features.names)
        ]


def _ends(routes: Routes) -> tuple[np.ndarray, np.ndarray]:
    return routes.origin, routes.destination


def _size(routes: Routes) -> dict[str, Any]:
    return {
        "routes": len(routes),
        "skipped": routes.skipped,
        "distinct_routes": len({route.tobytes() for route in routes.links}),
        "trips": len(set(zip(*_ends(routes), strict=True))),
        "mean_links": float(np.mean([len(route) for route in routes.links])),
        "mean_km": float(np.mean([routes.network.length[route].sum() for route in routes.links]))
        / 1000,
    }
