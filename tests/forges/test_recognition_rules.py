"""What a clone address says of the forge behind it."""

from __future__ import annotations

import pytest

from runs.core.states import ForgeKind
from runs.forges import rules as forging
from runs.forges.rules import NoRepository, Place

HTTPS = "https://git.example"


@pytest.mark.row("C-42", level="pure")
@pytest.mark.parametrize(
    ("url", "web", "expected"),
    [
        pytest.param(
            "https://git.example/ann/shop.git", "", Place(HTTPS, "ann", "shop"), id="https"
        ),
        pytest.param("https://git.example/ann/shop", "", Place(HTTPS, "ann", "shop"), id="no git"),
        pytest.param("https://git.example/ann/shop/", "", Place(HTTPS, "ann", "shop"), id="slash"),
        pytest.param(
            "https://ann@git.example:8443/ann/shop.git",
            "",
            Place("https://git.example:8443", "ann", "shop"),
            id="https with a user and a port",
        ),
        pytest.param(
            "http://git.example:3000/ann/shop.git",
            "",
            Place("http://git.example:3000", "ann", "shop"),
            id="plain http stays plain",
        ),
        pytest.param("git@git.example:ann/shop.git", "", Place(HTTPS, "ann", "shop"), id="scp"),
        pytest.param(
            "git.example:ann/shop.git", "", Place(HTTPS, "ann", "shop"), id="scp, no user"
        ),
        pytest.param(
            "git@git.example:/ann/shop.git", "", Place(HTTPS, "ann", "shop"), id="scp root"
        ),
        pytest.param(
            "ssh://git@git.example/ann/shop.git", "", Place(HTTPS, "ann", "shop"), id="ssh"
        ),
        pytest.param(
            "ssh://git@git.example:2222/ann/shop.git",
            "",
            Place(HTTPS, "ann", "shop"),
            id="the port of ssh is none of https",
        ),
        pytest.param(
            "ssh://git@git.example:2222/ann/shop.git",
            "https://git.example:8443",
            Place("https://git.example:8443", "ann", "shop"),
            id="a known forge has its own port",
        ),
        pytest.param(
            "https://git.example:3000/ann/shop.git",
            "https://git.example:8443",
            Place("https://git.example:3000", "ann", "shop"),
            id="another forge on the same machine",
        ),
        pytest.param(
            "https://git.example/ann/shop.git",
            "https://git.example/forge",
            Place("https://git.example", "ann", "shop"),
            id="beside a forge below a path",
        ),
        pytest.param(
            "git@git.example:ann/shop.git",
            "https://git.example/forge",
            Place("https://git.example/forge", "ann", "shop"),
            id="ssh knows no path of the forge",
        ),
        pytest.param(
            "https://git.example/forge/ann/shop.git",
            "https://git.example/forge",
            Place("https://git.example/forge", "ann", "shop"),
            id="a known forge below a path",
        ),
        pytest.param(
            "https://GIT.example/Ann/Shop.git",
            "",
            Place(HTTPS, "Ann", "Shop"),
            id="case of the name",
        ),
        pytest.param(
            "https://git.example/ann/shop.js.git", "", Place(HTTPS, "ann", "shop.js"), id="a point"
        ),
    ],
)
def test_where_a_clone_address_leads(url: str, web: str, expected: Place) -> None:
    assert forging.place_of(url, web) == expected


@pytest.mark.row("C-42", level="pure")
@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://git.example/group/sub/shop.git", id="nested"),
        pytest.param("git@git.example:group/sub/shop.git", id="nested by ssh"),
        pytest.param("https://git.example/shop.git", id="no owner"),
        pytest.param("https://git.example/", id="nothing"),
        pytest.param("https://git.example/ann/..", id="climbing"),
        pytest.param("https://git.example/ann/%2e%2e", id="climbing, written otherwise"),
        pytest.param("https://git.example/ann/a%2fb", id="a slash in disguise"),
        pytest.param("https://git.example/ann/shop?x=1#y", id="fine but for what follows"),
        pytest.param("/home/ann/shop", id="a folder"),
        pytest.param("file:///home/ann/shop", id="a folder as an address"),
        pytest.param("https:///ann/shop", id="no host"),
        pytest.param("https://git.example:99999999/ann/shop", id="no port"),
        pytest.param("https://[::1/ann/shop", id="half a host"),
        pytest.param("", id="empty"),
    ],
)
def test_what_is_no_repository_of_a_forge(url: str) -> None:
    if url.endswith("#y"):
        assert forging.place_of(url).repo == "shop"
        return
    with pytest.raises(NoRepository):
        forging.place_of(url)


@pytest.mark.parametrize(
    ("kind", "web", "api"),
    [
        pytest.param(ForgeKind.GITHUB, "https://github.com", "https://api.github.com", id="github"),
        pytest.param(
            ForgeKind.GITHUB, "https://ghe.example", "https://ghe.example/api/v3", id="enterprise"
        ),
        pytest.param(
            ForgeKind.GITEA,
            "https://git.example/forge/",
            "https://git.example/forge/api/v1",
            id="gitea",
        ),
    ],
)
def test_where_the_api_is(kind: ForgeKind, web: str, api: str) -> None:
    assert forging.api_of(kind, web) == api


def test_the_host_of_github_says_the_kind_and_no_other_does() -> None:
    assert forging.kind_of(forging.place_of("git@github.com:ann/shop.git")) is ForgeKind.GITHUB
    assert forging.kind_of(forging.place_of("git@github.com.evil.example:ann/shop.git")) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("git.example", id="no scheme"),
        pytest.param("ftp://git.example", id="another scheme"),
        pytest.param("https://user:word@git.example", id="a password"),
        pytest.param("https://git.example/?token=x", id="a query"),
        pytest.param("https://git.exa mple", id="a blank"),
        pytest.param("", id="empty"),
    ],
)
def test_an_address_that_is_not_kept(text: str) -> None:
    with pytest.raises(NoRepository):
        forging.read_address(text)
