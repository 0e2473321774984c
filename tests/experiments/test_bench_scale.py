"""`revealed bench scale` on a few decisions: that it measures, not what."""

import json

from revealed.cli import main


def test_a_size_is_fitted_measured_and_joins_what_is_there(tmp_path):
    out = tmp_path / "scale.json"
    earlier = {"samples": 300, "seconds": 1.0, "evaluations": 3, "peak_mib": 400.0}
    earlier |= {"relative_gap": 1e-5, "converged": True}
    earlier |= {"run": {"evaluation_processor_seconds": 0.1}}
    out.write_text(json.dumps({"lines": [earlier]}))
    assert main(["bench", "scale", "--out", str(out), "--sizes", "200"]) == 0
    report = json.loads(out.read_text())
    line, kept = report["lines"]
    assert (line["samples"], kept) == (200, earlier)
    assert line["converged"]
    assert line["relative_gap"] <= report["tol"]
    assert line["difference"] < 1e-3
    assert 0 < line["peak_mib"] < report["budget_mib"]
    assert line["run"]["evaluation_processor_seconds"] > 0
