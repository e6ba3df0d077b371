"""The page of all results: its numbers are those of the rows, it stands alone, and errors are said."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from statistics import fmean, stdev

import pytest
from page import Page

from drsne import cli
from drsne_paper import Rows, methods, report, runner, studies
from drsne_paper.document import DIFFERENCE, PAPER, Bullets, Figure, Heading, Table, Text, anchors
from drsne_paper.pages import html
from drsne_paper.studies import main as study_module
from drsne_paper.tables import number, signed

ROOT = Path(__file__).parents[2]
TITLES = {"controlled_clusters": "Controlled Clusters", "helix": "Helix"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of the quick main comparison on few points, by the command."""
    where = tmp_path_factory.mktemp("paper")
    command = ["reproduce", "main", "--quick", "--jobs", "1", "--datasets", *TITLES, "--seeds", "0", "1"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study_module, "QUICK_SAMPLES", 120)
        runner._embedded.cache_clear()
        methods = ["--methods", "pca", "tsne", "drsne_code"]
        assert cli.main([*command, *methods, "--folder", str(where / "main-quick")]) == 0
    return where


@pytest.fixture(scope="module")
def text(folder):
    return report.page(folder, quick=True)


def rows_of(folder):
    return [json.loads(line) for line in (folder / "main-quick" / "rows.jsonl").read_text().splitlines()]


def expected(rows, method, dataset, score):
    """Return a cell of the comparison, recomputed."""
    values = []
    for seed in sorted({row["seed"] for row in rows}):
        some = [
            row["metrics"] for row in rows if (row["method"], row["dataset"], row["seed"]) == (method, dataset, seed)
        ]
        allowed = [scores for scores in some if scores["trustworthiness"] >= 0.95]
        if allowed:
            values.append(max(allowed, key=lambda scores: scores["concentration_correlation"])[score])
    if not values:
        return "-"
    return f"{fmean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def test_numbers_are_those_of_the_rows(folder, text):
    rows, tables, seen = rows_of(folder), Page(text).tables, 0
    paper = json.loads((ROOT / "paper/src/drsne_paper/paper.json").read_text())["table"]
    for dataset, title in TITLES.items():
        header, *body = tables[title]
        lines = {line[0]: line for line in body}
        assert set(lines) == {"PCA", "t-SNE", "DR-SNE (the paper's code)"}
        for method, column in (("pca", None), ("tsne", "tsne"), ("drsne_code", "drsne")):
            line = lines[methods.find(method).title]
            for name, score in (
                ("TW", "trustworthiness"),
                ("CC", "concentration_correlation"),
                ("rho_S", "density_rank_correlation"),
            ):
                place = header.index(name)
                ours, theirs, difference = line[place : place + 3]
                assert ours == expected(rows, method, dataset, score)
                if column is None or ours == "-":
                    assert difference == "-"
                    continue
                mean, std = paper[dataset][column][score]
                assert theirs == f"{mean:.3f} ± {std:.3f}"
                assert float(difference) == pytest.approx(float(ours.split()[0]) - mean, abs=1.1e-3)
                seen += 1
    assert seen >= 6


def test_counts_are_those_of_the_rows(folder, text):
    rows = rows_of(folder)
    line = next(line for line in Page(text).tables["The runs"] if line[0] == "main")
    assert line[2].split()[0] == str(len(rows))
    assert line[3] == "0"
    assert all(version in text for row in rows for version in row["versions"].values())
    assert all(str(row["commit"] or "unknown") in text for row in rows)


def test_the_same_rows_give_the_same_page(folder, text):
    assert report.page(folder, quick=True) == text


def test_the_page_stands_alone(text):
    page = Page(text)
    names = [tag for tag, _ in page.tags]
    assert not {"script", "link", "iframe", "object"} & set(names)
    assert "@import" not in text
    assert "url(" not in text
    identities = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(identities) == len(set(identities))
    for tag, attributes in page.tags:
        if tag == "img":
            assert attributes["src"].startswith("data:image/png;base64,")
            assert attributes["alt"]
        elif tag == "a":
            address = attributes["href"]
            assert address[1:] in identities if address[0] == "#" else address.startswith("https://github.com/")
        else:
            assert not {"src", "href"} & set(attributes)
    assert names.count("img") == 1
    assert names.count("h1") == 1


def test_differences_are_coloured():
    body = [["a", number(0.5, 0.01), signed(0.05)], ["b", "-", "-"], ["c", number(0.1), signed(-0.3)]]
    table = Table(["method", "CC", DIFFERENCE], body)
    text = html([table], Path())
    assert '<td class="number above" style="--strength:0.50">+0.050</td>' in text
    assert '<td class="number below" style="--strength:1.00">-0.300</td>' in text
    assert '<td class="number">-</td>' in text


def test_tables_have_captions_and_headers(text):
    """Every table has a caption, every header cell a scope, and every line begins with a row header."""
    page = Page(text)
    names = [tag for tag, _ in page.tags]
    assert names.count("table") == names.count("caption") > 3
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in page.tags if tag == "th")
    lines = [place for place, tag in enumerate(names) if tag == "tr"]
    assert {names[place + 1] for place in lines} == {"th"}
    assert all(attributes["aria-label"] for _, attributes in page.tags if attributes.get("role") == "region")


def test_a_caption_is_the_heading_if_there_is_no_other():
    text = html([Heading("Run time"), Table(["n"], [["1"]]), Table(["n"], [["1"]], "Seconds <s>")], Path())
    assert re.findall("<caption><span>(.*?)</span>", text) == ["Run time", "Seconds &lt;s&gt;"]


def test_the_best_values_are_bold():
    """The largest printed mean of a column, ties included, among rows of the same data set."""
    body = [
        ["A", "x", number(0.5, 0.1), number(0.9)],
        ["A", "y", number(0.7, 0.2), "-"],
        ["A", "z", number(0.7001, 0.001), number(0.1)],
        ["B", "x", number(0.1), number(0.1)],
        ["B", "y", number(-0.2), number(0.3)],
        ["C", "x", number(0.9), number(0.3)],  # nothing to compare with
    ]
    table = Table(["data", "method", "CC", "rest"], body, best=["CC"], within="data")
    text = re.sub("</?span[^>]*>", "", html([table], Path()))
    assert re.findall("<strong>(.*?)</strong>", text) == ["0.700 ± 0.200", "0.700 ± 0.001", "0.100"]
    alone = re.sub("</?span[^>]*>", "", html([Table(table.header, body, best=["CC", "rest"])], Path()))
    assert re.findall("<strong>(.*?)</strong>", alone) == ["0.900", "0.900"]
    assert "<strong>" not in html([Table(table.header, body)], Path())


def test_the_best_values_of_the_page(folder, text):
    """In the tables of the comparison the bold cells are the largest means of the rows."""
    rows = rows_of(folder)
    for dataset, title in TITLES.items():
        section = text.split(f">{title}</h4>")[1].split("</table>")[0]
        bold = [re.sub("<[^>]*>", "", cell) for cell in re.findall("<strong>(.*?)</strong>", section)]
        for score in ("trustworthiness", "concentration_correlation", "density_rank_correlation"):
            cells = [expected(rows, method, dataset, score) for method in ("pca", "tsne", "drsne_code")]
            best = max((float(cell.split()[0]) for cell in cells if cell != "-"), default=None)
            found = [cell for cell in cells if cell != "-" and float(cell.split()[0]) == best]
            assert len([cell for cell in cells if cell != "-"]) < 2 or set(found) <= set(bold)


def test_a_score_carries_what_is_beside_it():
    """Narrow layouts hide the columns of the paper and show them below the score."""
    header = ["method", "TW", PAPER, DIFFERENCE, "seeds"]
    body = [["a", number(0.95), number(0.9, 0.01), signed(0.05), "3"], ["b", number(0.95), "-", "-", "3"]]
    text = html([Table(header, body)], Path())
    assert 'data-reference="0.900 ± 0.010" data-mean="0.900" data-difference="+0.050">0.950</td>' in text
    assert '<td class="number above beside" style="--strength:0.50">+0.050</td>' in text
    assert text.count("data-reference") == 1
    assert '<table class="stacks">' in text
    assert 'aria-label="TW, paper"' in text
    assert '<table class="stacks many">' in html([Table(header[:1] + header[1:4] * 4, [])], Path())


def test_further_scores_are_shown(folder, tmp_path):
    """Scores that rows have beyond those of the study are columns; a line without them has dashes."""
    rows = rows_of(folder)
    for row in rows:
        row["metrics"]["continuity"] = 0.25
        if row["method"] != "pca":
            row["metrics"]["local_density_rank_correlation"] = 0.5
    (tmp_path / "main-quick").mkdir()
    (tmp_path / "main-quick" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    header, *body = Page(report.page(tmp_path, quick=True)).tables["Helix"]
    assert header[-5:] == ["Cont", "local rho_S", "chosen, by seed", "seeds", "grid"]
    lines = {line[0]: line[-5:-3] for line in body if line[1] != "-"}
    assert lines["t-SNE"] == ["0.250 ± 0.000", "0.500 ± 0.000"]
    assert lines.get("PCA", ["0.250", "-"]) == ["0.250", "-"]
    (study,), found = studies.load("main").load_results(tmp_path / "main-quick", quick=True)
    studies.load("main").write((study,), found, tmp_path)
    assert "local $\\rho_S$" in (tmp_path / "table.tex").read_text()
    assert "local_density_rank_correlation" in (tmp_path / "table.csv").read_text()


def test_verdicts_are_short(text):
    """The rule and the numbers of a claim are folded away."""
    section = text.split('id="claims"')[1].split("</table>")[0]
    shown = re.sub("<[^>]*>", "", re.sub(r"<details>.*?</details>", "", section, flags=re.DOTALL))
    assert "Rule" not in shown
    assert section.count("<details>") == section.count('<th scope="row">') > 10


def test_odd_text_means_itself(folder, tmp_path):
    """A row whose error has everything that HTML gives a meaning to."""
    rows = rows_of(folder)
    odd = '<script>alert("1")</script> & <b title="x">\x00 a[0](javascript:alert(1)) `c**d**`'
    rows[0] |= {"error": odd, "metrics": {}}
    (tmp_path / "main-quick").mkdir()
    (tmp_path / "main-quick" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = Page(report.page(tmp_path, quick=True))
    assert not {"script", "b"} & {tag for tag, _ in page.tags}
    assert 'seed 0: <script>alert("1")</script> & <b title="x">\ufffd a[0](javascript:alert(1)) c**d**' in "".join(
        page.words
    )
    line = next(line for line in page.tables["The runs"] if line[0] == "main")
    assert line[3] == "1"


def test_blocks():
    blocks = [
        Heading("Title", 1),
        Heading("Twice"),
        Heading("Twice"),
        Text('`a < b` and **c** and [d](https://example.org/?a="x"&b) and [e](docs/guide.md#x&y)'),
        Bullets(["one", "two"]),
        Figure("none.png", 'not "here"'),
    ]
    assert anchors(blocks, prefix="p-") == ["p-title", "p-twice", "p-twice-2"]
    text = html(blocks, Path("nowhere"), prefix="p-", deeper=1)
    Page(text)
    assert '<h2 id="p-title">Title</h2>\n<h3 id="p-twice">Twice</h3>\n<h3 id="p-twice-2">' in text
    assert "<code>a &lt; b</code> and <strong>c</strong>" in text
    assert "[d](https" in text  # a quotation mark is in no address
    assert '<a href="docs/guide.md#x&amp;y">e</a>' in text
    assert '<p class="missing">There is no picture yet: not &quot;here&quot;</p>' in text


def test_a_study_without_rows_is_said(text):
    words = "".join(Page(text).words)
    assert "There are no rows yet; drsne reproduce ablations makes them." in words
    claims = Page(text).tables["Claims of the paper"]
    assert all(line[1].startswith("not run yet") for line in claims if line[2] == "drsne reproduce ablations")
    assert any("so far" in line[1] for line in claims if line[2] == "drsne reproduce main")


class Checks(studies.PaperStudy):
    """A study whose rows are of another kind, and that has no runs."""

    name, description = "checks", "whether two and two are four"

    def parts(self, selection=None):
        return ()

    def draw(self, parts, rows, folder):
        raise AssertionError("a page draws nothing")

    def blocks(self, parts, rows, folder):
        return [Heading("Checks", 1), Text(f"{len(rows)} made")]

    def load_results(self, folder, *, quick=False):
        return (), Rows(folder / "rows.jsonl").read()


def test_a_study_without_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "names", lambda: ["checks", "main"])
    usual = studies.load
    monkeypatch.setattr(studies, "load", lambda name: Checks() if name == "checks" else usual(name))
    for folder in ("checks", "checks-quick"):
        Rows(tmp_path / folder / "rows.jsonl").append([{"key": "a", "commit": None, "seconds": {"check": 61.0}}])
    for quick in (False, True):
        page = Page(report.page(tmp_path, quick=quick))
        assert page.tables["The runs"][1] == [
            "checks",
            "whether two and two are four",
            "1 of 1",
            "0",
            "1 min",
            "unknown (1)",
        ]
        assert "1 made" in page.words


def test_no_package_of_a_peer_is_needed(folder, text, monkeypatch):
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    assert report.page(folder, quick=True) == text


def test_the_command(folder, text, capsys, tmp_path):
    output = tmp_path / "deep" / "page.html"
    assert cli.main(["report", "--quick", "--folder", str(folder), "--output", str(output)]) == 0
    assert output.read_text(encoding="utf-8") == text
    assert capsys.readouterr().out == f"Wrote {output} ({len(text.encode()) / 1e6:.2f} MB).\n"
    assert [path.name for path in output.parent.iterdir()] == ["page.html"]
    assert cli.main(["report", "--quick", "--folder", str(folder)]) == 0
    assert (folder / "report-quick.html").read_text(encoding="utf-8") == text


def test_a_page_that_is_too_large(folder, capsys, tmp_path):
    output = tmp_path / "page.html"
    output.write_text("the one before")
    command = ["report", "--quick", "--folder", str(folder), "--output", str(output), "--max-mb", "0.02"]
    assert cli.main(command) == 1
    err = capsys.readouterr().err
    assert re.fullmatch(r"drsne: The page has \d\.\d\d MB, more than max_mb=0\.02\. .*figure_main\.png \(0\..*\n", err)
    assert "pass a larger --max-mb" in err
    assert output.read_text() == "the one before"
    assert cli.main([*command[:-1], "100"]) == 0


def test_a_failed_write_leaves_the_page_before(folder, monkeypatch, tmp_path):
    output = tmp_path / "page.html"
    output.write_text("the one before")

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        report.write(folder, output, quick=True)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert output.read_text() == "the one before"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--folder", "nowhere"], "folder must be a folder with results of drsne reproduce; got 'nowhere'"),
        (["--folder", "."], "rows.jsonl; got '.', which holds none. Run drsne reproduce main first."),
        (["--folder", ".", "--output", "."], "output must be a file; got the folder '.'"),
        (["--folder", ".", "--docs", "no.md"], "docs must be a Markdown file; got 'no.md', which is not a file"),
        (["--folder", ".", "--max-mb", "0"], "max_mb must be a finite number above 0; got 0.0"),
    ],
)
def test_errors_are_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", *arguments]) == 1
    err = capsys.readouterr().err
    assert err.startswith("drsne: ")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_docs_show_full_results(capsys):
    assert cli.main(["report", "--quick", "--docs", "no.md"]) == 2
    assert "--docs and --quick cannot be combined" in capsys.readouterr().err


def test_time_of_the_runs():
    shared = {"dataset": "a", "seconds": {"neighbors": 5.0, "optimization": 1.0}}
    other = {"dataset": "b", "seconds": {"neighbors": 5.0}}
    assert report.seconds([shared, shared, other, {"dataset": "c"}]) == 12.0
    assert [report.duration(value) for value in (12.4, 60, 3599, 3600, 7500)] == [
        "12 s",
        "1 min",
        "1 h 00 min",
        "1 h 00 min",
        "2 h 05 min",
    ]
    assert math.isclose(report.seconds([]), 0.0)


def test_claims_in_a_document(tmp_path):
    """The table goes between its marks, and the rest stays."""
    file = tmp_path / "doc.md"
    file.write_text(f"before\n\n{report.MARKS[0]}\nOLD TABLE\n{report.MARKS[1]}\n\nafter\n")
    report.update_claims(file, ROOT / "paper" / "results")
    text = file.read_text()
    assert text.startswith(f"before\n\n{report.MARKS[0]}\n\n| claim of the paper")
    assert text.endswith(f"{report.MARKS[1]}\n\nafter\n")
    assert "OLD TABLE" not in text
    report.update_claims(file, ROOT / "paper" / "results")
    assert file.read_text() == text
    once = "\n".join(report.MARKS)
    for wrong in ("nothing", report.MARKS[0], "\n".join(report.MARKS[::-1]), f"{once}\nbetween\n{once}\nafter"):
        file.write_text(wrong)
        with pytest.raises(ValueError, match=r"docs must contain the line <!-- claims.* once"):
            report.update_claims(file, ROOT / "paper" / "results")
        assert file.read_text() == wrong
    assert [one.name for one in tmp_path.iterdir()] == ["doc.md"]
