package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// OpenKind opens the collection of one more kind.
func OpenKind[T object.Object[T]](db *DB, kind string, indexes map[store.Index]func(T) []string) (*Collection[T], error) {
	return collection(db, kind, indexes)
}

// OpenRaw is Open with options for bbolt.
func OpenRaw(path string, options Options, raw bbolt.Options) (*DB, error) {
	return open(path, options, raw)
}

// FailCommits lets instead carry out commits from the next on. It may call do.
func (db *DB) FailCommits(instead func(do func() error) error) {
	db.update = func(write func(*bbolt.Tx) error) error {
		return instead(func() error { return db.file.Update(write) })
	}
}
