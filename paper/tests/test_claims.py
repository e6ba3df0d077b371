"""Verdicts: each word is reached from rows that deserve it."""

from __future__ import annotations

import pytest

from drsne_paper import claims
from drsne_paper.claims import (
    FAILS,
    HOLDS,
    IN_PART,
    NOT_RUN,
    NOT_TESTED,
    ablations,
    anomaly,
    main,
    runtime,
    theory,
    tradeoff,
)
from drsne_paper.studies.ablations import TABLES, part


def row(**given):
    return {"study": "s", "dataset": "digits", "method": "drsne_code", "value": None, "seed": 0, "error": None} | given


def compared(dataset, method, cc, tw=0.99, rho=0.5, seed=0):
    scores = {"trustworthiness": tw, "concentration_correlation": cc, "density_rank_correlation": rho}
    return row(dataset=dataset, method=method, seed=seed, metrics=scores)


@pytest.mark.parametrize("study", claims.names())
def test_every_claim_waits_for_rows(study):
    for claim in claims.load(study):
        for judge in (claim.judge, *claim.also.values()):
            assert judge([]) == (NOT_RUN, "")
        assert claim.text.endswith(".")
        assert not claim.criterion.endswith(".")


def test_a_study_without_claims():
    assert claims.load("nothing") == ()


@pytest.mark.parametrize(("digits", "helix", "word"), [(0.9, 0.9, HOLDS), (0.9, 0.7, IN_PART), (0.7, 0.7, FAILS)])
def test_highest(digits, helix, word):
    rows = [compared("digits", "drsne_code", digits), compared("helix", "drsne_code", helix)]
    rows += [compared(name, "densmap", 0.8) for name in ("digits", "helix")]
    rows.append(compared("helix", "umap", 0.99, tw=0.5))  # below the threshold: no competitor
    found = main.highest(rows, "drsne_code")
    assert found.word == word
    assert f"largest on {sum(cc > 0.8 for cc in (digits, helix))} of 2 data sets" in found.numbers
    assert main.highest(rows, "drsne").word == NOT_RUN


def test_a_method_without_a_map_above_the_threshold_is_not_the_highest():
    rows = [compared("digits", "drsne_code", 0.9, tw=0.5), compared("digits", "tsne", 0.1)]
    found = main.highest(rows, "drsne_code")
    assert found.word == FAILS
    assert "not on Digits (no map is above the threshold)" in found.numbers
    assert main.trustworthy(rows, "drsne_code").word == FAILS
    assert main.less_dense(rows, "drsne_code").word == NOT_RUN


def test_trustworthy():
    peers = [compared("digits", name, 0.5, tw=tw) for name, tw in (("tsne", 0.99), ("umap", 0.98), ("densne", 0.97))]
    near, far = compared("digits", "drsne", 0.9, tw=0.951), compared("digits", "drsne", 0.9, tw=0.95)
    assert main.trustworthy([*peers, near], "drsne").word == HOLDS
    found = main.trustworthy(
        [*(peer | {"metrics": peer["metrics"] | {"trustworthiness": 0.99}} for peer in peers), far], "drsne"
    )
    assert found.word == FAILS
    assert "farthest below on Digits (-0.040; in the paper's table it is on Helix, -0.029)" in found.numbers


def test_less_dense():
    rows = [compared("digits", "drsne_code", 0.9, rho=0.4), compared("digits", "tsne", 0.9, rho=0.9)]
    assert main.less_dense(rows, "drsne_code").word == NOT_RUN  # t-SNE is not asked
    assert main.less_dense([*rows, compared("digits", "densne", 0.9, rho=0.5)], "drsne_code").word == HOLDS
    assert main.less_dense([*rows, compared("digits", "densne", 0.9, rho=0.3)], "drsne_code").word == FAILS


def test_steady():
    rows = [compared("digits", "drsne", cc, seed=seed) for seed, cc in enumerate((0.9, 0.91, 0.9))]
    assert main.steady(rows, "drsne").word == HOLDS
    assert main.steady([*rows, compared("digits", "drsne", 0.7, seed=3)], "drsne").word == FAILS


def ablation(table, way, score, value_of):
    """Rows of a table where a score is a function of what varies, and the others do not change."""
    out = []
    for value, setting in TABLES[table, way].items():
        for seed in (42, 43, 44):
            scores = dict.fromkeys(("trustworthiness", "continuity", "concentration_correlation", "stress"), 0.9)
            out.append(
                row(
                    **part(setting).identity("pbmc3k", "drsne_code", setting.lam, seed),
                    value=setting.lam,
                    metrics={name: value_of(value) if name in score else old for name, old in scores.items()},
                )
            )
    return out


TW, CC = ("trustworthiness",), ("concentration_correlation",)


@pytest.mark.parametrize(
    ("judge", "table", "score", "good", "bad"),
    [
        (ablations.small_helps, "lambda", TW, lambda v: 0.92 if v == 0.001 else 0.9 - v, lambda v: 0.9 - v),
        (ablations.degrades, "pca", ("trustworthiness", "continuity"), lambda v: 1 - v / 500, lambda v: 0.9),
        (ablations.relaxes, "pca", ("stress",), lambda v: 3 - v / 100, lambda v: v / 100),
        (ablations.stays_high, "k", CC, lambda v: 0.97 + v / 20_000, lambda v: 0.97 - v / 1000),
        (ablations.improves, "k", (*TW, "continuity"), lambda v: 0.8 + v / 4000, lambda v: 0.9 - v / 4000),
    ],
)
def test_ablations(judge, table, score, good, bad):
    """Both ways have to meet it; one alone is in part."""
    rows = {
        way: {name: ablation(table, way, score, f) for name, f in (("good", good), ("bad", bad))}
        for way in ablations.WAYS
    }

    def word(published, controlled):
        some = rows["published"][published] + rows["controlled"][controlled]
        return ablations.both(some, table=table, judge=judge).word

    assert word("good", "good") == HOLDS
    assert word("good", "bad") == word("bad", "good") == IN_PART
    assert word("bad", "bad") == FAILS
    assert ablations.both(rows["controlled"]["good"], table=table, judge=judge).word == HOLDS


def test_lambda_trades():
    rows = ablation("lambda", "controlled", CC, lambda v: 0.5 + v)
    for one in rows:
        one["metrics"]["trustworthiness"] = 0.95 - one["value"] + 0.001 * (one["seed"] - 43)
    found = ablations.both(rows, table="lambda", judge=ablations.trades)
    assert found.word == HOLDS
    assert "CC 0.500 at 0, 0.600 at 0.1; TW 0.950 at 0, 0.850 at 0.1" in found.numbers
    flat = ablation("lambda", "controlled", CC, lambda v: 0.5 + v)
    assert ablations.both(flat, table="lambda", judge=ablations.trades).word == FAILS
    assert ablations.both(flat, table="lambda", judge=ablations.steady).word == HOLDS
    for one in flat:
        one["metrics"]["trustworthiness"] += 0.1 * (one["seed"] == 42)
    assert ablations.both(flat, table="lambda", judge=ablations.steady).word == FAILS
    for one in flat:
        one["metrics"]["trustworthiness"] -= 0.1 * (one["seed"] == 42 and one["value"] > 0)
    some = ablations.both(flat, table="lambda", judge=ablations.steady)
    assert some.word == IN_PART
    assert some.numbers == "controlled: met at 5 of 6 lambda; not TW ± 0.058 at 0"


def test_more_neighbours_are_asked_of_both_scores():
    rows = ablation("k", "controlled", TW, lambda v: 0.8 + v / 4000)
    assert ablations.both(rows, table="k", judge=ablations.improves).word == FAILS


def along(dataset, trust, concentration):
    return [
        row(
            dataset=dataset,
            value=lam,
            seed=seed,
            metrics={"trustworthiness": tw + 1e-4 * seed, "concentration_correlation": cc + 1e-4 * seed},
        )
        for seed in (42, 43)
        for lam, tw, cc in zip((0.0, 0.001, 0.1), trust, concentration, strict=True)
    ]


def traded(rows):
    words = [tradeoff.small_helps(rows, "drsne_code", 0.005), tradeoff.trades(rows, "drsne_code")]
    return [found.word for found in (*words, tradeoff.alike(rows, "drsne_code"))]


def test_tradeoff():
    rows = along("digits", (0.90, 0.92, 0.80), (0.5, 0.7, 0.99)) + along("mnist", (0.95, 0.96, 0.9), (0.3, 0.9, 0.95))
    assert traded(rows) == [HOLDS] * 3
    other = along("pbmc3k", (0.90, 0.80, 0.95), (0.9, 0.5, 0.3))
    assert traded(other) == [FAILS, FAILS, NOT_RUN]
    assert traded(rows + other) == [HOLDS, IN_PART, FAILS]
    assert traded([one | {"method": "drsne_wide"} for one in rows]) == [NOT_RUN] * 3


@pytest.mark.parametrize(("power", "words"), [(2.0, (NOT_TESTED, FAILS)), (1.0, (NOT_TESTED, HOLDS))])
def test_runtime(power, words):
    rows = [
        row(data={"n_samples": n}, method=method, metrics={}, seconds={"total": 1e-6 * n**power})
        for n in (1000, 3000, 5000, 9000)
        for method in ("exact_one", "fft_one")
    ]
    found = [claim.judge(rows) for claim in runtime.CLAIMS]
    assert tuple(one.word for one in found) == words
    assert all(f"to the power {power:.2f}" in one.numbers for one in found)
    assert "the paper's own program was not timed" in found[0].numbers  # our engine is no evidence about it
    assert runtime.CLAIMS[0].judge(rows[:6]).word == NOT_RUN


def detected(method, value, knn, others, dataset="thyroid"):
    scores = {f"auprc_{name}": others for name in ("centroid", "isolation_forest", "lof")} | {"auprc_knn": knn}
    return [row(dataset=dataset, method=method, value=value, seed=seed, metrics=scores) for seed in (0, 1)]


def test_anomaly():
    ours = detected("drsne", [0.0, 40], 0.1, 0.1) + detected("drsne", [0.1, 40], 0.5, 0.2)
    half = detected("drsne", [1.0, 40], 0.9, 0.9)[:1]  # one seed of two: not complete
    rows = [*ours, *half, *detected("umap", [5, 0.1], 0.3, 0.6), *detected("high_d", None, 0.2, 0.2)]
    rows += detected("drsne_auto", "input", 1.0, 1.0)  # never asked
    found = anomaly.competitive(rows, "drsne")
    assert found.word == IN_PART
    assert "chosen for each detector: best in 1 and near the best in 1 of 4 cases" in found.numbers
    assert anomaly.competitive(rows, "drsne_code").word == NOT_RUN
    assert anomaly.nobody_dominates(rows, "drsne").word == HOLDS
    assert anomaly.weight_helps(rows, "drsne").word == HOLDS
    assert "Thyroid 0.100 at 0, 0.200 at 0.1" in anomaly.weight_helps(rows, "drsne").numbers
    better = [*ours, *detected("umap", [5, 0.1], 0.9, 0.9)]
    assert anomaly.competitive(better, "drsne").word == anomaly.nobody_dominates(better, "drsne").word == FAILS
    worse = [*ours, *detected("umap", [5, 0.1], 0.1, 0.1)]
    assert anomaly.competitive(worse, "drsne").word == HOLDS
    assert anomaly.nobody_dominates(worse, "drsne").word == FAILS
    assert anomaly.weight_helps(detected("drsne", [0, 40], 0.5, 0.5), "drsne").word == NOT_RUN


def test_the_best_weight_should_differ():
    def swept(dataset, best):
        return detected("drsne", [0.0, 40], 0.1, 0.1, dataset) + detected("drsne", [best, 40], 0.5, 0.2, dataset)

    assert anomaly.weight_helps(swept("thyroid", 0.1) + swept("shuttle", 0.01), "drsne").word == HOLDS
    assert anomaly.weight_helps(swept("thyroid", 0.1) + swept("shuttle", 0.1), "drsne").word == FAILS
    assert anomaly.weight_helps(swept("thyroid", 0.1) + swept("spiral", 0.01), "drsne").word == HOLDS  # in the figure
    assert anomaly.weight_helps(swept("cifar10", 0.1), "drsne").word == NOT_RUN


def test_the_data_themselves_are_no_embedding_method():
    ours, peer = detected("drsne", [0.1, 40], 0.1, 0.1), detected("umap", [5, 0.1], 0.3, 0.3)
    assert anomaly.nobody_dominates(ours + peer + detected("high_d", None, 0.9, 0.2), "drsne").word == FAILS


def test_theory():
    def check(name, holds):
        return row(method=name, details={"number": 1e-9, "bound": 1e-6, "holds": holds})

    rows = [check("map_scaled", True), check("map_moved", False), check("map_scaled_root_epsilon", True)]
    scaled, moved, *_ = theory.CLAIMS
    assert scaled.judge(rows) == (HOLDS, "met by 1 of 1 checks (1.0e-09, bound 1.0e-06)")
    assert moved.judge(rows).word == FAILS
    assert scaled.also["the authors' code"](rows).word == FAILS
    both = [check("amplification_correlations", True), check("amplification_zero", False)]
    assert theory.CLAIMS[2].judge(both).word == IN_PART
