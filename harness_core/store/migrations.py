"""The tables of the SQLite store, and how an older file becomes a newer one.  A released migration never changes."""

from __future__ import annotations

from typing import Final

from sqlite_utils import Database, Migrations

from harness_core.errors import NewerFormat

MIGRATIONS: Final = Migrations("harness_core.store")

# facts: the journals. seq is contiguous from 1 in each session; the envelope lies in columns, the rest in body.
# sessions: what would have to be counted from the facts on every call. opens_at: where `open` begins; rested_seq and
# rest_until: the last rest. leases: the fence outlives its owner. processes: one heartbeat each.
LISTED: Final = ("RuleChanged", "HITLPending")

_JOURNALS: Final = (
    """
    create table sessions (
        session_id text primary key,
        last_seq integer not null,
        opens_at integer not null default 1,
        rested_seq integer not null default 0,
        rest_until real
    ) without rowid
    """,
    # With a rowid, since bodies are large: rows lie where they were appended and only their index is sorted.
    """
    create table facts (
        session_id text not null references sessions,
        seq integer not null,
        at real not null,
        run_id text not null,
        key text,
        kind text not null,
        body text not null
    )
    """,
    "create unique index facts_by_seq on facts (session_id, seq)",
    "create unique index facts_by_key on facts (session_id, key) where key is not null",
    "create table processes (owner text primary key, beat_at real not null) without rowid",
    """
    create table leases (
        session_id text primary key,
        owner text references processes on delete set null,
        fence integer not null
    ) without rowid
    """,
)


def _journals(db: Database) -> None:
    for statement in _JOURNALS:
        db.execute(statement)


def _rules(db: Database) -> None:
    # Of the kinds that people list across sessions. A full index by kind would cost every append a page.
    for kind in LISTED:
        db.execute(f"create index facts_{kind} on facts (session_id, seq) where kind = '{kind}'")


STEPS: Final = {"001_journals": _journals, "002_rules": _rules}
for _name, _step in STEPS.items():
    MIGRATIONS(name=_name)(_step)


def migrate(db: Database) -> None:
    """Bring a new or an older file up to date. Raises NewerFormat, changing nothing, for a file from the future."""
    if refuse_newer(db) == STEPS.keys():
        return
    # The lock first: two processes that open a new file at once must not both create its tables. The library's own
    # transactions begin without it, and become savepoints inside ours.
    db.execute("begin immediate")
    try:
        refuse_newer(db)
        MIGRATIONS.apply(db)
        db.execute("commit")
    except BaseException:
        if db.conn.in_transaction:
            db.execute("rollback")
        raise


def refuse_newer(db: Database) -> set[str]:
    """The names of the steps that were done. Raises NewerFormat if one of them is not ours."""
    done = {step.name for step in MIGRATIONS.applied(db)}
    if unknown := done - STEPS.keys():
        raise NewerFormat(
            f"This database was changed by a newer version of the harness ({', '.join(sorted(unknown))}). "
            "Upgrade before you open it; nothing was changed."
        )
    return done
