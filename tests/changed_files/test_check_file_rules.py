"""Which changed files belong to the checks: one case for each rule, and its edges."""

from __future__ import annotations

import shlex
import time

import pytest

from runs.changed_files.check_file_rules import (
    Changed,
    CheckFile,
    Checks,
    Guarded,
    Part,
    Texts,
    find_check_files,
    list_wanted_texts,
)

pytestmark = pytest.mark.pure

COMMAND, CONFIGURATION, CI, REMOVED = (
    Part.COMMAND,
    Part.CONFIGURATION,
    Part.CI,
    Part.REMOVED_TEST,
)


def checks(*lines: str, **more: object) -> Checks:
    return Checks(tuple(Guarded(tuple(shlex.split(line))) for line in lines), **more)  # type: ignore[arg-type]


def marks(line: str, *changed: Changed, **texts: Texts) -> list[CheckFile]:
    named = {name.replace("__", "."): text for name, text in texts.items()}
    return find_check_files(checks(line), changed, named)


@pytest.mark.parametrize(
    ("line", "path", "part"),
    [
        # Files that the command names.
        ("./scripts/test.sh", "scripts/test.sh", COMMAND),
        ("sh scripts/test.sh --fast", "scripts/test.sh", COMMAND),
        ("bash -c 'cd web && ./run-tests'", "web/run-tests", COMMAND),
        ("bash -c 'for one in a b; do ./run-tests; done'", "run-tests", COMMAND),
        ("python scripts/../tools/check.py", "tools/check.py", COMMAND),
        ("python -m tools.check", "tools/check.py", COMMAND),
        ("python -m tools.check", "tools/check/__main__.py", COMMAND),
        ("uv run --frozen scripts/check.py", "scripts/check.py", COMMAND),
        ("env CI=1 timeout 60 ./check", "check", COMMAND),
        ("pytest -c ci/pytest.toml", "ci/pytest.toml", COMMAND),
        ("ruff check --config=lint/ruff.conf .", "lint/ruff.conf", COMMAND),
        ("pytest tests/test_a.py::test_one", "tests/test_a.py", COMMAND),
        ("python manage.py test", "manage.py", COMMAND),
        ("./prüfe.sh", "pru\u0308fe.sh", COMMAND),
        ("./Check.sh", "check.sh", COMMAND),
        ("bash -c 'cd $DIR && ./run-tests'", "run-tests", COMMAND),
        ("pytest -cci/pytest.toml", "ci/pytest.toml", COMMAND),
        ("ruff --check src", "check", None),
        ("run tools.check", "tools/check.py", None),
        ("make -C web test", "web", None),
        ("./scripts/test.sh", "docs/scripts/test.sh", None),
        ("../scripts/test.sh", "scripts/test.sh", None),
        ("/usr/bin/true scripts", "scripts/test.sh", None),
        ("ruff check src", "src/main.py", None),
        # Recipes that say which programs run.
        ("make test", "Makefile", COMMAND),
        ("make test", "GNUmakefile", COMMAND),
        ("make test", "build/rules.mk", COMMAND),
        ("make -C web test", "web/makefile", COMMAND),
        ("just test", "justfile", COMMAND),
        ("task test", "Taskfile.yml", COMMAND),
        ("tox -e py312", "tox.ini", COMMAND),
        ("nox -s tests", "noxfile.py", COMMAND),
        ("uv run nox", "noxfile.py", COMMAND),
        ("npm test", "package.json", COMMAND),
        ("pnpm run lint", "package.json", COMMAND),
        ("yarn test", "packages/web/package.json", COMMAND),
        ("npm test", "package-lock.json", None),
        ("docker compose run app pytest", "compose.yaml", COMMAND),
        ("docker compose run app pytest", "docker-compose.ci.yml", COMMAND),
        ("docker compose run app pytest", "Dockerfile", COMMAND),
        ("pre-commit run --all-files", ".pre-commit-config.yaml", COMMAND),
        ("./gradlew test", "app/build.gradle.kts", COMMAND),
        ("mvn verify", "pom.xml", COMMAND),
        ("pytest", "Makefile", None),
        # Settings of the checkers that run.
        ("pytest -q", "pytest.ini", CONFIGURATION),
        ("uv run pytest", "tests/unit/conftest.py", CONFIGURATION),
        (".venv/bin/python -m pytest", "CONFTEST.py", CONFIGURATION),
        ("coverage run -m pytest", ".coveragerc", CONFIGURATION),
        ("ruff check .", "src/ruff.toml", CONFIGURATION),
        ("ruff check .", ".ruff.toml", CONFIGURATION),
        ("mypy src", "mypy.ini", CONFIGURATION),
        ("npx eslint .", "eslint.config.mjs", CONFIGURATION),
        ("npx eslint .", "web/.eslintrc.json", CONFIGURATION),
        ("npx tsc --noEmit", "tsconfig.build.json", CONFIGURATION),
        ("npx jest", "jest.config.ts", CONFIGURATION),
        ("npx vitest run", "vitest.config.ts", CONFIGURATION),
        ("golangci-lint run", ".golangci.yml", CONFIGURATION),
        ("cargo clippy", "clippy.toml", CONFIGURATION),
        ("cargo test", ".cargo/config.toml", CONFIGURATION),
        ("go test ./...", "go.work", CONFIGURATION),
        ("go test ./...", "go.mod", None),
        ("ruff check .", "mypy.ini", None),
        ("ruff check .", "tests/conftest.py", None),
        # Behind a recipe or a script nobody can tell what runs.
        ("make test", "pytest.ini", CONFIGURATION),
        ("./scripts/test.sh", ".eslintrc.json", CONFIGURATION),
        ("bash -c 'for one in a b; do ./run-tests; done'", "pytest.ini", CONFIGURATION),
        ("make pytest", "mypy.ini", CONFIGURATION),
        ("./check test", "pytest.ini", CONFIGURATION),
        ("./scripts/test.sh", "Makefile", None),
        ("bash -c 'pytest -q'", "mypy.ini", None),
        ("xvfb-run pytest", "mypy.ini", None),
        ("./wrap pytest", "mypy.ini", None),
        ("bash -c 'cd $DIR && make -C web'", "web/Makefile", COMMAND),
        ("git diff --exit-code", "pytest.ini", None),
        # CI, whatever the commands are.
        ("pytest", ".github/workflows/ci.yml", CI),
        ("pytest", ".github/actions/set-up/action.yml", CI),
        ("pytest", ".gitea/workflows/ci.yaml", CI),
        ("pytest", ".forgejo/workflows/ci.yaml", CI),
        ("pytest", ".gitlab-ci.yml", CI),
        ("pytest", ".circleci/config.yml", CI),
        ("pytest", ".woodpecker/build.yaml", CI),
        ("pytest", ".woodpecker.yml", CI),
        ("pytest", "Jenkinsfile", CI),
        ("pytest", "docs/.github/workflows/ci.yml", None),
        ("pytest", "Jenkinsfile.d/stage.groovy", None),
        ("pytest", ".github/CODEOWNERS", None),
        # Work as usual.
        ("pytest", "src/main.py", None),
        ("pytest", "tests/test_main.py", None),
        ("pytest", "uv.lock", None),
        ("pytest", "docs/pytest.ini.md", None),
    ],
)
def test_a_changed_file_belongs_to_the_checks_by_its_name(line, path, part):
    found = marks(line, Changed(path))
    assert [(one.path, one.part) for one in found] == ([(path, part)] if part else [])


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (Changed("tests/test_a.py", "D"), "A test file was deleted."),
        (Changed("src/a_test.go", "D"), "A test file was deleted."),
        (Changed("web/src/a.spec.tsx", "D"), "A test file was deleted."),
        (Changed("src/AccountTest.java", "D"), "A test file was deleted."),
        (Changed("Tests/helpers.py", "D"), "A test file was deleted."),
        (Changed("old/a.py", "R090", "tests/a.py"), "moved out of the tests (it was `tests/a.py`)"),
        (Changed("tests/a.py", "R", "tests/test_a.py"), "(it was `tests/test_a.py`), and test"),
        (Changed("tests/unit/test_a.py", "R", "tests/test_a.py"), ""),
        (Changed("tests/b.py", "R", "tests/a.py"), ""),
        (Changed("src/test_b.py", "R", "tests/a.py"), ""),
        (Changed("src/b.py", "R", "src/a.py"), ""),
        (Changed("src/helper.py", "C", "tests/test_a.py"), ""),
        (Changed("src/a.py", "R"), ""),
        (Changed("tests/test_a.py", "M"), ""),
        (Changed("tests/data/page.html", "D"), ""),
        (Changed("src/contest.py", "D"), ""),
        (Changed("src/latest.py", "D"), ""),
    ],
)
def test_a_test_that_is_taken_away_is_marked_as_that(changed, why):
    found = marks("pytest", changed)
    assert [one.part for one in found] == ([REMOVED] if why else [])
    assert all(why in one.why for one in found)


def test_settings_that_lie_beside_the_tests_are_no_test():
    [found] = marks("pytest", Changed("tests/conftest.py", "D"))
    assert (found.part, found.why) == (CONFIGURATION, "`pytest` may read it. It was deleted.")


def test_settings_that_are_moved_out_of_the_tests_are_no_test_either():
    [found] = marks("pytest", Changed("old/thing.py", "R", "tests/conftest.py"))
    assert found.part == CONFIGURATION


@pytest.mark.parametrize(
    ("line", "path", "verb"),
    [
        ("make -C web test", "web/Makefile", "reads"),
        ("make test -C web", "web/Makefile", "reads"),
        ("make --directory=web test", "web/Makefile", "reads"),
        ("make -C web test", "Makefile", "reads"),
        ("make -C web/app test", "web/Makefile", "reads"),
        ("bash -c 'cd web && make'", "web/Makefile", "reads"),
        ("make -C web -C app test", "web/app/Makefile", "reads"),
        ("make test", "web/Makefile", "may read"),
        ("make -C web test", "api/Makefile", "may read"),
        ("make -C webapp test", "web/Makefile", "may read"),
        ("make -C", "Makefile", "reads"),
        ("make --directory=", "Makefile", "reads"),
    ],
)
def test_a_file_where_the_command_works_or_above_is_read(line, path, verb):
    [found] = marks(line, Changed(path))
    assert found.why == f"`{line}` {verb} it."


@pytest.mark.parametrize(("letters", "is_cut"), [(80, False), (81, True)])
def test_a_long_command_is_cut_in_the_sentence(letters: int, is_cut: bool) -> None:
    line = f"./check {'x' * (letters - 8)}"
    [found] = marks(line, Changed("check"))
    shown = f"{line[:79]}…" if is_cut else line
    assert found.why == f"Named in the command `{shown}`."


def test_what_a_file_is_has_words_and_is_stored():
    words = ["run by a check", "configuration", "CI", "test removed"]
    assert [one.words for one in Part] == words
    [found] = marks("make", Changed("Makefile.old", "R100", "Makefile"))
    assert found.to_json() == {
        "path": "Makefile.old",
        "part": "command",
        "why": "`make` reads it. It was renamed.",
        "old_path": "Makefile",
    }


def test_the_texts_of_shared_files_of_settings_at_the_top_are_wanted():
    paths = ("src/main.py", "setup.cfg", "PyProject.toml", "lib/tox.ini", "pytest.ini")
    changed = [Changed(path) for path in paths]
    assert list_wanted_texts(changed) == ["PyProject.toml", "setup.cfg"]


PYPROJECT = Texts(
    '[project]\ndependencies = []\n[tool.ruff]\nline-length = 100\n[tool.pytest.ini_options]\naddopts = "-q"\n',
    '[project]\ndependencies = ["x"]\n[tool.ruff]\nline-length = 120\n[tool.pytest.ini_options]\naddopts = "-q"\n',
)


@pytest.mark.parametrize(
    ("line", "path", "texts", "why"),
    [
        ("ruff check", "pyproject.toml", PYPROJECT, "reads it, and [tool.ruff] changed."),
        ("pytest", "pyproject.toml", PYPROJECT, ""),
        ("make", "pyproject.toml", PYPROJECT, "ruff reads it, and [tool.ruff] changed, and `make`"),
        ("pytest", "pyproject.toml", Texts("", "[tool.pytest]\nx = 1"), "[tool.pytest] changed"),
        ("pytest", "pyproject.toml", Texts("[tool", ""), "it could not be read"),
        ("pytest", "pyproject.toml", None, "which of its sections changed is not known"),
        ("pytest", "lib/pyproject.toml", None, "may read it (which of its sections"),
        ("mypy .", "setup.cfg", Texts("[mypy]\na=1", "[mypy]\na=2"), "[mypy] changed"),
        ("mypy .", "setup.cfg", Texts("[mypy-x.*]\na=1", ""), "[mypy-x.*] changed"),
        ("mypy .", "setup.cfg", Texts("[metadata]\na=1", "[metadata]\na=2"), ""),
        ("pytest", "tox.ini", Texts("[pytest]\na=1", "[pytest]\na=2"), "[pytest] changed"),
        ("pytest", "tox.ini", Texts("[tox]\na=1", "[tox]\na=2"), ""),
        (
            "npm test",
            "package.json",
            Texts('{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}'),
            "“scripts” changed",
        ),
        (
            "npm test",
            "package.json",
            Texts('{"dependencies": {}}', '{"dependencies": {"a": "1"}}'),
            "",
        ),
        ("npm test", "package.json", Texts("{}", "[]"), "it could not be read"),
        ("cargo test", "Cargo.toml", Texts("[lints]\na = 1", ""), "[lints] changed"),
        ("cargo test", "Cargo.toml", Texts("", "[dependencies]\na = '1'"), ""),
    ],
)
def test_a_file_that_holds_much_counts_where_what_a_checker_reads_has_changed(
    line, path, texts, why
):
    found = find_check_files(checks(line), [Changed(path)], {path: texts} if texts else {})
    assert len(found) == bool(why)
    assert all(why in one.why for one in found)


def test_what_measures_coverage_counts_without_being_named_in_a_command():
    plain, measured = checks("./test"), checks("ruff check", measures_coverage=True)
    assert find_check_files(checks("ruff check"), [Changed(".coveragerc")], {}) == []
    assert [one.part for one in find_check_files(plain, [Changed(".coveragerc")], {})] == [
        CONFIGURATION
    ]
    [found] = find_check_files(measured, [Changed(".coveragerc", "A")], {})
    assert found.why == "Coverage is measured by it. It is new."
    [report] = find_check_files(checks(report="./coverage.xml"), [Changed("coverage.xml", "A")], {})
    assert "a test command should write it" in report.why
    assert find_check_files(checks(report="coverage.xml"), [Changed("other.xml")], {}) == []


def test_coverage_is_measured_by_its_own_settings_alone():
    measured = checks("pytest", measures_coverage=True)
    changed = [Changed("mypy.ini"), Changed("pyproject.toml")]
    assert find_check_files(measured, changed, {"pyproject.toml": PYPROJECT}) == []


def test_what_only_prepares_checks_nothing_and_its_script_is_named_all_the_same():
    both = Checks((Guarded(("./install.sh",), prepares=True), Guarded(("pytest",))))
    found = find_check_files(both, [Changed("install.sh"), Changed("mypy.ini")], {})
    assert [one.path for one in found] == ["install.sh"]
    loop = ("bash", "-c", "for one in a b; do ./install.sh; done")
    both = Checks((Guarded(loop, prepares=True), Guarded(("pytest",))))
    found = find_check_files(both, [Changed("install.sh"), Changed("mypy.ini")], {})
    assert [one.path for one in found] == ["install.sh"]


@pytest.mark.parametrize("argv", [(), ("env",), ("env", "A=1")])
def test_a_command_without_a_program_names_nothing(argv):
    assert find_check_files(Checks((Guarded(argv),)), [Changed("src/main.py")], {}) == []


def test_a_renamed_file_counts_by_its_old_name_too():
    [found] = marks("make test", Changed("Makefile.old", "R100", "Makefile"))
    assert found == CheckFile(
        "Makefile.old", COMMAND, "`make test` reads it. It was renamed.", "Makefile"
    )


def test_removed_tests_come_first_and_each_file_once():
    changed = [Changed("pytest.ini"), Changed(".gitlab-ci.yml"), Changed("tests/test_a.py", "D")]
    found = find_check_files(checks("./run", "pytest", "pytest pytest.ini"), changed, {})
    assert [one.part for one in found] == [REMOVED, COMMAND, CI]


def test_without_commands_ci_and_removed_tests_still_count():
    changed = [Changed("Makefile"), Changed("Jenkinsfile"), Changed("test_a.py", "D")]
    assert [one.part for one in find_check_files(Checks(), changed, {})] == [REMOVED, CI]


def test_ten_thousand_files_take_no_time():
    changed = [Changed(f"src/deep/er/module_{n}.py") for n in range(10_000)]
    began = time.process_time()
    assert find_check_files(checks("make", "./x", "npm test", "pytest"), changed, {}) == []
    assert time.process_time() - began < 4
