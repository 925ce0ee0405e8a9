// Package postgres keeps the objects of a fleet in PostgreSQL 13 or newer, so that several processes can manage it in
// turn. It is a module of its own: go get it in addition to the library's root module.
//
//	db, err := postgres.Open(ctx, "postgres://fleet@db.example/fleet", postgres.Options{})
//	…
//	defer db.Close()
//	err = db.Lead(ctx, lead.Options{ID: host}, func(term *lead.Held) error { … })
//
// Package remote documents what a DB does. A write is one statement that compares the object's version, and locks the
// leader's row against a takeover if the write belongs to a term: so none commits after another process leads. Objects
// are JSON in a table, for people to query.
//
// docs/how-to/postgres.md describes rights, backups and limits.
package postgres
