"""Published series: each claim is mapped, each difference has a reason, the table is current."""

from benchmarks import loadtest_cases as cases


def test_the_written_comparison_is_what_the_command_makes(shared, root):
    made = cases.report(shared / "facts")
    written = (root / "benchmarks" / "loadtest_cases.md").read_text(encoding="utf-8")
    assert made == written
    assert "NO REASON GIVEN" not in made


def test_every_labelled_case_is_compared_and_most_agree(shared):
    found = cases.labelled(shared / "facts")
    ids = {key.split()[0] for key, *_ in found}
    table = (shared / "facts" / "load_test_cases.csv").read_text(encoding="utf-8")
    assert ids == {line.split(",")[0] for line in table.splitlines()[1:]}
    agree = [verdict == claim.expected for _, claim, verdict, _ in found]
    assert sum(agree) >= 13


def test_the_share_of_the_cache_follows_from_bytes(shared):
    """Where the class is clear from the bytes, the measured share is close to theirs."""
    for key, _, _, shown in cases.llama_cpp(shared / "facts"):
        if not key.startswith("depth"):
            continue
        share = cases.expected_share(key.removeprefix("depth, "), 32768)
        if share is not None:
            assert abs(float(shown.split()[0]) - share) < 0.06
