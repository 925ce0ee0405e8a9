// Package bolt keeps the objects of a manager in one file, on
// go.etcd.io/bbolt, for fleets that are run without an API server. It is a module
// of its own: go get it beside the library's root module.
//
//	db, err := bolt.Open("state/fleet.db", bolt.Options{})
//	…
//	defer db.Close()
//	options := db.ManagerOptions()
//	options.Driver = …
//
// A write has reached the disk when its call returns, and no reader sees it before. Memory holds
// everything too, and serves reads and watches. A file belongs to one process at a time.
//
// Secrets are stored in clear: the file, which is created for its owner alone,
// and its backups must be guarded like the secrets themselves. No error of this
// package contains anything of an object but its kind and key.
//
// docs/how-to/bolt.md describes the layout, backups and limits.
package bolt
