"""The rules of more than one machine: how a host stands, which takes a start, whose turn it is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.dispatch.eligibility import Want, Why, of_place
from runs.dispatch.rules import Candidate, Queue, Room, fill
from runs.hosts import rules
from runs.hosts.rules import HostFacts, HostState, Job, Miss, News, place

EVERY = timedelta(seconds=30)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        pytest.param({}, HostState.WORKING, id="was heard just now"),
        pytest.param({"silent_for": 3 * EVERY}, HostState.WORKING, id="three intervals"),
        pytest.param({"silent_for": 3 * EVERY + SECOND}, HostState.UNKNOWN, id="longer"),
        pytest.param({"silent_for": None}, HostState.UNKNOWN, id="never heard"),
        pytest.param({"silent_for": -90 * SECOND}, HostState.WORKING, id="heard ahead of time"),
        pytest.param({"is_draining": True}, HostState.DRAINING, id="draining"),
        pytest.param(
            {"is_draining": True, "silent_for": None}, HostState.UNKNOWN, id="draining, silent"
        ),
        pytest.param({"is_removed": True, "silent_for": None}, HostState.REMOVED, id="removed"),
    ],
)
def test_how_a_host_stands(facts, state):
    known = {"is_draining": False, "is_removed": False, "silent_for": SECOND, **facts}
    assert rules.state_of(interval=EVERY, **known) is state


@pytest.mark.parametrize(
    ("state", "runs", "was_told", "news"),
    [
        pytest.param(HostState.UNKNOWN, 2, False, News.SILENT, id="silent over its runs"),
        pytest.param(HostState.UNKNOWN, 2, True, News.NONE, id="that was told"),
        pytest.param(HostState.UNKNOWN, 0, False, News.NONE, id="silent, and nothing runs there"),
        pytest.param(HostState.UNKNOWN, 0, True, News.NONE, id="its runs were given up"),
        pytest.param(HostState.WORKING, 2, True, News.BACK, id="back"),
        pytest.param(HostState.DRAINING, 0, True, News.BACK, id="back without runs, draining"),
        pytest.param(HostState.WORKING, 2, False, News.NONE, id="works as ever"),
    ],
)
def test_what_is_told_of_a_host(state, runs, was_told, news):
    assert rules.news(state, runs, was_told=was_told) is news


def host(name, free=2, **more):
    if "labels" in more:
        more["labels"] = frozenset(more["labels"])
    if "warm" in more:
        more["warm"] = frozenset(more["warm"])
    return HostFacts(name, free=free, **more)


ANY, GPU = Job("demo"), Job("demo", "gpu")
PLACES = [
    pytest.param(ANY, [host("a")], "a", id="the only one"),
    pytest.param(ANY, [host("a"), host("b", 5)], "b", id="most free slots"),
    pytest.param(ANY, [host("b"), host("a")], "a", id="as many: the first by name"),
    pytest.param(
        ANY, [host("a", 3), host("b", 2, warm=["demo"])], "b", id="a warm clone, one less"
    ),
    pytest.param(ANY, [host("a", 4), host("b", 2, warm=["demo"])], "a", id="two less is too few"),
    pytest.param(ANY, [host("a", 1), host("b", 0, warm=["demo"])], "a", id="warm but full"),
    pytest.param(ANY, [host("a", warm=["x"]), host("b")], "a", id="another project's clone"),
    pytest.param(GPU, [host("a", 5), host("b", 1, labels=["gpu"])], "b", id="has the label"),
    pytest.param(
        ANY, [host("a", 9, state=HostState.DRAINING), host("b")], "b", id="not a draining one"
    ),
    pytest.param(
        ANY, [host("a", 9, state=HostState.UNKNOWN), host("b")], "b", id="not an unknown one"
    ),
    pytest.param(
        ANY, [host("a", 9, state=HostState.REMOVED), host("b")], "b", id="not a removed one"
    ),
    pytest.param(ANY, [host("a", 9, is_behind=True), host("b")], "b", id="not an older version"),
    pytest.param(ANY, [host("a", 9, has_disk=False), host("b")], "b", id="not without disk"),
    pytest.param(
        Job("demo", is_bound=True), [host("a", 9), host("b", 1, warm=["demo"])], "b", id="bound"
    ),
    pytest.param(Job("demo", is_bound=True), [host("a")], "a", id="bound, on the only host"),
]


@pytest.mark.parametrize(("job", "hosts", "name"), PLACES)
def test_which_host_takes_a_start(job, hosts, name):
    found = place(job, hosts)
    assert (found.host, found.miss) == (name, Miss.NONE)
    assert place(job, hosts[::-1]) == found  # every host has to find the same


@pytest.mark.parametrize(
    ("job", "hosts", "miss", "text"),
    [
        pytest.param(GPU, [host("a")], Miss.NO_LABEL, "No host has the label gpu.", id="no label"),
        pytest.param(
            GPU,
            [host("a"), host("b", 0, labels=["gpu"])],
            Miss.FULL,
            "No host with label gpu is free. A slot is free again when a run ends or is stopped.",
            id="full",
        ),
        pytest.param(
            GPU,
            [
                host("b", labels=["gpu"], state=HostState.DRAINING),
                host("c", labels=["gpu"], state=HostState.UNKNOWN),
                host("d", labels=["gpu"], is_behind=True),
                host("e", labels=["gpu"], has_disk=False),
            ],
            Miss.CLOSED,
            "No host with label gpu takes new runs: b is draining, c is silent, "
            "d runs an older version, e has no disk space left.",
            id="none takes any",
        ),
        pytest.param(
            Job("demo", is_bound=True),
            [host("a"), host("b")],
            Miss.NO_CLONE,
            "No host with what this project asks for has its repository, which labsite keeps itself.",
            id="bound elsewhere",
        ),
    ],
)
def test_why_no_host_takes_it(job, hosts, miss, text):
    found = place(job, hosts)
    assert (found.miss, found.text) == (miss, text)
    assert found.host == ("b" if miss is Miss.FULL else "")  # one of them gives the answer


@pytest.mark.parametrize(
    ("mine", "others", "behind"),
    [
        ("0.1.0+93", ["0.1.0+93"], False),
        ("0.1.0+92", ["0.1.0+92", "0.1.0+93"], True),
        ("0.1.0+100", ["0.1.0+93"], False),
        ("0.2.0+93", ["0.1.9+99"], False),
        ("", ["0.1.0+93"], True),
        ("", [""], False),
    ],
)
def test_an_older_version_is_behind(mine, others, behind):
    assert rules.is_behind(mine, others) is behind


@pytest.mark.parametrize(
    ("labels", "order", "place"),
    [
        ([], (), 1),
        (["Priority:High"], (), 0),
        (["priority:low"], (), 2),
        (["p2", "p1"], ("p1", "p2"), 0),
        (["p2"], ("p1", "p2"), 1),
        (["other"], ("p1", "p2"), 2),
        (["priority:low"], ("p1",), 2),
    ],
)
def test_the_place_of_an_issue_by_its_labels(labels, order, place):
    assert rules.rank(labels, order) == place


@pytest.mark.parametrize("word", ["", "-a", "a b", "ä", "x" * 41])
def test_what_cannot_be_a_label(word):
    if word:
        with pytest.raises(ValueError, match="cannot be a label"):
            rules.read_labels([word])
    assert rules.read_labels(["GPU", "gpu", "big-disk", ""]) == ("big-disk", "gpu")


@pytest.mark.parametrize(("name", "fits"), [("gpu-1", True), ("a/b", False), ("-a", False)])
def test_what_can_name_a_host(name, fits):
    assert (not rules.unfit_name(name)) is fits


def queue(project, keys, alive=0, weight=1, **more):
    ready = [Candidate(str(key + 1)) for key in keys]
    return Queue(
        has_tracker=True,
        ready=ready,
        claims=(),
        active=(),
        project=project,
        want=Want(is_on=True),
        auto_alive=alive,
        parallel=100,
        weight=weight,
        **more,
    )


def order(queues, room):
    return "".join(str(one.project) for one, _ in fill(queues, room))


@pytest.mark.parametrize(
    ("queues", "slots", "turns"),
    [
        pytest.param([queue(1, range(5)), queue(2, range(5))], 4, "1212", id="in turn"),
        pytest.param(
            [queue(1, range(9)), queue(2, range(9), weight=3)], 8, "12221222", id="by weight"
        ),
        pytest.param(
            [queue(1, range(9), alive=2), queue(2, range(9))], 3, "221", id="who has less first"
        ),
        pytest.param([queue(1, []), queue(2, range(2))], 4, "22", id="what others leave"),
    ],
)
def test_projects_share_free_slots_by_weight(queues, slots, turns):
    assert order(queues, Room((), 0, slots)) == turns


def room(me, *hosts, occupied=0, cap=9, elsewhere=0):
    return Room((), occupied, cap, elsewhere, host=me, hosts=hosts)


def test_two_hosts_share_the_work_and_take_no_issue_both():
    hosts = (host("a", 3), host("b", 3))
    line = [queue(1, range(9), job=ANY)]
    assert len(fill(line, room("a", *hosts))) == 1  # then b has more room
    assert fill(line, room("b", *hosts)) == []
    assert len(fill(line, room("b", host("a", 2), host("b", 3)))) == 1


def test_each_host_takes_what_asks_for_its_label():
    hosts = (host("a", 9), host("b", 2, labels=["gpu"]))
    line = [queue(1, range(3), job=GPU), queue(2, range(2), job=ANY)]
    assert order(line, room("a", *hosts)) == "22"
    assert order(line, room("b", *hosts)) == "11"


def test_the_obstacle_is_that_of_the_host_which_would_take_it():
    def whys(job, room):
        return [one.why for one in of_place(job, room)]

    full = (host("a", 0), host("b", 2))
    assert whys(ANY, room("a", *full, occupied=9, cap=20)) == []
    assert whys(ANY, room("a", *full, occupied=5, cap=9, elsewhere=4)) == [Why.AT_CAP]
    assert whys(GPU, room("a", *full)) == [Why.NO_HOST]
    assert whys(ANY, room("a", host("a", 0), host("b", 0))) == [Why.AT_CAP]
    assert whys(ANY, room("a", host("a", 0), occupied=9)) == [Why.AT_CAP]
    assert whys(ANY, Room((), 1, 9, host_cap=1)) == [Why.AT_CAP]
