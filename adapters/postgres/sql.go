package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// sql has the statements of an engine.
type sql struct {
	create string

	get, list string
	// insert and update return whether the fence let them pass, and the order of the record if there was one to
	// write.
	insert, update string

	// all and since return records with the snapshot that shows them, since those that were not visible in an earlier
	// one.
	all, since, purge string

	take, holder, renew, release string
}

// statements returns the statements for a schema.
//
// Objects that are gone stay for an hour as rows without a document, so that who follows the table sees their end. writes
// rises with each write of a row. A version is random, so that none comes back after a restore.
//
// A write under a token locks the leader's row FOR KEY SHARE. Renewals change no key, and go on beside it. A takeover
// changes the key, the token: it waits for the writes that hold the lock, and those that come later wait for it, look again,
// and find another token.
func statements(schema string) sql {
	const fence = `with fence as materialized (
	select 1 from $schema.leader where token = $1 and expires > clock_timestamp() for key share
), passed as (select $1 = 0 or exists (select 1 from fence) as ok), `
	const answer = ` returning writes, xid::text)
select (select ok from passed), (select writes from written), (select xid from written)`
	const columns = `kind, namespace, name, version, writes, document::text, xid::text`
	const server = `(select pg_current_snapshot()::text as snapshot, pg_postmaster_start_time()::text || ' ' ||
	(select timeline_id || ' ' || (select system_identifier from pg_control_system()) from pg_control_checkpoint()) as server,
	pg_is_in_recovery() as standby) s`
	in := func(text string) string {
		return strings.ReplaceAll(text, "$schema", pgx.Identifier{schema}.Sanitize())
	}
	return sql{
		create: in(`create schema if not exists $schema;
create table if not exists $schema.objects (
	kind text not null,
	namespace text not null,
	name text not null,
	version bigint not null,
	writes bigint not null,
	xid xid8 not null default pg_current_xact_id(),
	document json,
	changed timestamptz not null default now(),
	primary key (kind, namespace, name)
) with (fillfactor = 80);
create index if not exists objects_xid on $schema.objects (xid);
create table if not exists $schema.leader (
	one boolean primary key default true check (one),
	id text not null,
	token bigint not null unique,
	expires timestamptz not null
)`),
		get: in(`select ` + columns + ` from $schema.objects
where kind = $1 and namespace = $2 and name = $3 and document is not null`),
		list: in(`select ` + columns + ` from $schema.objects where document is not null and ($1 = '' or kind = $1)`),
		insert: in(fence + `written as (
	insert into $schema.objects as o (kind, namespace, name, version, writes, document)
	select $2, $3, $4, $5, (extract(epoch from clock_timestamp()) * 1000000)::bigint, $6::text::json from passed where ok
	on conflict (kind, namespace, name) do update
	set version = excluded.version, writes = o.writes + 1, xid = pg_current_xact_id(), document = excluded.document, changed = now()
	where o.document is null` + answer),
		update: in(fence + `written as (
	update $schema.objects
	set version = $5, writes = writes + 1, xid = pg_current_xact_id(), document = $6::text::json, changed = now()
	where kind = $2 and namespace = $3 and name = $4 and version = $7 and document is not null and (select ok from passed)` + answer),
		all: in(`select s.snapshot, s.server, s.standby, o.* from ` + server + `
left join (select ` + columns + ` from $schema.objects) o on true`),
		since: in(`select s.snapshot, s.server, s.standby, o.* from ` + server + `
left join (select ` + columns + ` from $schema.objects
	where xid >= pg_snapshot_xmin($1::text::pg_snapshot) and not pg_visible_in_snapshot(xid, $1::text::pg_snapshot)) o on true`),
		purge: in(`delete from $schema.objects where document is null and changed < now() - interval '1 hour'`),
		take: in(`insert into $schema.leader as l (id, token, expires)
values ($1, (extract(epoch from clock_timestamp()) * 1000000)::bigint, clock_timestamp() + make_interval(secs => $2))
on conflict (one) do update
set id = excluded.id, token = greatest(l.token + 1, excluded.token), expires = clock_timestamp() + make_interval(secs => $2)
where l.expires <= clock_timestamp() returning token`),
		holder:  in(`select id, extract(epoch from expires - clock_timestamp())::float8 from $schema.leader where expires > clock_timestamp()`),
		renew:   in(`update $schema.leader set expires = clock_timestamp() + make_interval(secs => $2) where token = $1 and expires > clock_timestamp()`),
		release: in(`update $schema.leader set expires = clock_timestamp() where token = $1 and expires > clock_timestamp()`),
	}
}
