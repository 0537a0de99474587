"""The columns of a model as SQL, made once a process instead of once a query.

Django renders each column of each query anew, 124 of a run and 70 of its project: a millisecond where
SQLite needs a tenth of one to answer. What it renders depends on the model and on the columns that
are asked for alone, so it is remembered. An engine names its compiler
(`DatabaseOperations.compiler`), which is all that differs from Django's engines; whatever is not a
plain list of a model's columns is left to Django.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.db.models.expressions import Col
from django.db.models.sql.compiler import SQLCompiler
from django.utils.functional import cached_property

if TYPE_CHECKING:
    from django.db.models import Field, Model


class RememberedColumns:
    """For an engine's `DatabaseOperations`: its SELECT compiler remembers columns."""

    def compiler(self, compiler_name: str) -> type[SQLCompiler]:
        found: type[SQLCompiler] = super().compiler(compiler_name)  # type: ignore[misc]
        if compiler_name != "SQLCompiler":
            return found
        if found.__module__ not in _compilers:
            _compilers[found.__module__] = type("SQLCompiler", (Remembering, found), {})
        return _compilers[found.__module__]


class Column(Col):
    """A column with what a compiler makes of it; it equals the `Col` that Django made."""

    made: Col
    entry: tuple[Col, tuple[str, Any], None]
    is_converted: bool

    @cached_property
    def identity(self) -> Any:
        return self.made.identity


# By the module of the engine's own compiler, which may have a rule of its own and stands behind ours.
_compilers: dict[str, type[SQLCompiler]] = {}
# By kind of database, model, its name in the query, and the columns that are asked for; empty are all.
_columns: dict[tuple[str, type[Model], str, frozenset[Field[Any, Any]]], list[Column]] = {}


class Remembering(SQLCompiler):
    """Makes the same SQL as Django's compiler, to the letter."""

    has_columns_alone = False

    def get_default_columns(
        self,
        select_mask: Any,
        start_alias: str | None = None,
        opts: Any = None,
        from_parent: Any = None,
    ) -> list[Any]:
        opts = opts or self.query.get_meta()
        alias = start_alias or self.query.get_initial_alias()
        if from_parent or opts is None or opts.parents:
            columns: list[Any] = super().get_default_columns(
                select_mask, start_alias, opts, from_parent
            )
            return columns
        key = (self.connection.vendor, opts.model, alias, frozenset(select_mask))
        known = _columns.get(key)
        if known is None:
            made = super().get_default_columns(select_mask, start_alias, opts, from_parent)
            known = _columns[key] = [self._rendered(column) for column in made]
        return known

    def _rendered(self, made: Any) -> Column:
        column = Column(made.alias, made.target, made.output_field)
        column.made = made
        column.entry = (column, column.select_format(self, *self.compile(column)), None)
        column.is_converted = bool(super().get_converters([column]))
        return column

    def get_select(self, with_col_aliases: bool = False) -> Any:
        query = self.query
        is_plain = query.default_cols and query.selected is None and not with_col_aliases
        if not is_plain or query.annotation_select or query.extra_select:
            return super().get_select(with_col_aliases)
        select_mask = query.get_select_mask()
        columns = self.get_default_columns(select_mask)
        info: dict[str, Any] = {"model": query.model, "select_fields": list(range(len(columns)))}
        if query.select_related:
            pairs: list[Any] = [(column, None) for column in columns]
            info["related_klass_infos"] = related = self.get_related_selections(pairs, select_mask)
            columns = [column for column, _ in pairs]
            if any(one["from_parent"] for one in _all(related)):
                return super().get_select(with_col_aliases)
        columns = [
            column if type(column) is Column else self._rendered(column) for column in columns
        ]
        self.has_columns_alone = True
        return [column.entry for column in columns], info if columns else None, {}

    def _order_by_pairs(self) -> Any:
        """Django looks whether it orders by an alias; columns alone have none, so it need not list them."""
        pairs: Any = super()._order_by_pairs
        if not self.has_columns_alone or self.query.combinator:
            return pairs()
        selected, self.select = self.select, []
        try:
            return list(pairs())
        finally:
            self.select = selected

    def get_converters(self, expressions: Any) -> Any:
        expressions = list(expressions)
        if not all(type(expression) is Column for expression in expressions):
            return super().get_converters(expressions)
        # Not remembered themselves: they belong to a connection, and that to a thread.
        places = [place for place, column in enumerate(expressions) if column.is_converted]
        found = super().get_converters([expressions[place] for place in places])
        return dict(zip(places, found.values(), strict=True))


def _all(infos: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    for info in infos:
        yield info
        yield from _all(info["related_klass_infos"])
