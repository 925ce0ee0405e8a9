// Package bolt stores the objects of a manager in a file of go.etcd.io/bbolt, for fleets without an API
// server. It is a module of its own: go get it in addition to the library's root module.
//
//	db, err := bolt.Open("state/fleet.db", bolt.Options{})
//	…
//	defer db.Close()
//	options := db.ManagerOptions()
//	options.Driver = …
//
// A write is on the disk when its call returns, and no reader sees it earlier. All objects are also held
// in memory, which serves reads and watches. Only one process at a time can open a file.
//
// Secrets are stored unencrypted, unless Options.Seal is set. So protect the file and its backups like the secrets
// themselves. The file is created with mode 0600. Errors of this package contain only the kind and the key of an
// object.
//
// docs/how-to/bolt.md describes the layout, backups and limits.
package bolt
