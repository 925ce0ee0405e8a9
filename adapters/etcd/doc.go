// Package etcd keeps the objects of a fleet in etcd 3.5.8 or newer, so that several processes can manage it in turn.
// It is a module of its own: go get it in addition to the library's root module.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
//	…
//	db, err := etcd.Open(ctx, client, etcd.Options{})
//	…
//	defer db.Close()
//	err = db.Lead(ctx, lead.Options{ID: host}, func(term *lead.Held) error { … })
//
// Package remote documents what a DB does. A write is one transaction that compares the object's revision, and the
// revision of the leader's key if the write belongs to a term: so none lands after another process has taken over.
//
// docs/how-to/etcd.md describes the settings of the server, backups and limits.
package etcd
