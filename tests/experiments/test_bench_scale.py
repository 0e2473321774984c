"""`revealed bench scale` on a few decisions: that it measures, not what."""

import json

from revealed.cli import main


def test_every_size_is_fitted_and_measured(tmp_path, capsys):
    out = tmp_path / "scale.json"
    assert main(["bench", "scale", "--sizes", "200,400", "--max-iter", "2", "--out", str(out)]) == 0
    told = json.loads(out.read_text())
    assert [line["samples"] for line in told["lines"]] == [200, 400]
    assert all(not line["failed"] and line["peak_mib"] > 50 for line in told["lines"])
    # Two evaluations are no time to converge, which is what the fit says with its code.
    assert all(line["code"] == 1 and line["converged"] is False for line in told["lines"])
    assert all(0 < line["held_out_repeated"] <= 1 for line in told["lines"])
    assert "to the power" in capsys.readouterr().out
