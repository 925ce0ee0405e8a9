package bolt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store/record"
)

// Export writes all objects to w as they are at one time, with their UIDs and status: the way to another store.
// Secrets are exported as they are stored: encrypted, if Options.Seal is set. It fails with a *DamagedError if
// there is a damaged object. Backup makes a copy of the file instead.
func (db *DB) Export(w io.Writer) error {
	db.gate.RLock()
	defer db.gate.RUnlock()
	err := db.usable()
	if err == nil {
		err, _ = catchPanic(func() error { return db.file.View(func(tx *bbolt.Tx) error { return db.export(tx, w) }) })
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

func (db *DB) export(tx *bbolt.Tx, w io.Writer) error {
	if damaged := db.Damaged(); len(damaged) > 0 {
		return damaged[0]
	}
	out, err := record.NewWriter(w)
	if err != nil {
		return err
	}
	for _, k := range db.kinds {
		err := tx.Bucket(k.bucketName()).ForEach(func(_, stored []byte) error {
			return out.Write(record.Object{Kind: k.name(), Record: stored[headLength:]})
		})
		if err != nil {
			return err
		}
	}
	return out.Close()
}

// Import makes a file at path with all objects of an export, with their UIDs and status, and returns how many there are.
// The file must not exist (fs.ErrExist). Stop the manager of the store that they come from before the export, for
// good: two stores with the same fleet double it. If Import fails, it makes no file.
func Import(path string, r io.Reader, options Options) (int, error) {
	i := importing{kinds: importers(options.Seal), summaries: make(map[string]kindSummary)}
	err := createFile(path, func(tx *bbolt.Tx) error {
		i.tx = tx
		if err := initialize(tx); err != nil {
			return err
		}
		if err := record.Read(r, i.add); err != nil {
			return err
		}
		for kind, summary := range i.summaries {
			if err := tx.Bucket([]byte(kind)).SetSequence(summary.Version); err != nil {
				return err
			}
		}
		return writeSummary(tx, i.summaries)
	})
	if err != nil {
		if !errors.Is(err, fs.ErrExist) {
			err = withoutPath(err)
		}
		return i.count, fmt.Errorf("import into %s: %w", path, err)
	}
	return i.count, nil
}

// importing is the state of Import within its transaction.
type importing struct {
	tx        *bbolt.Tx
	kinds     map[string]func(content []byte, version uint64) (key, stored []byte, err error)
	summaries map[string]kindSummary
	count     int
}

// add stores an object.
func (i *importing) add(o record.Object) error {
	transcribe := i.kinds[o.Kind]
	if transcribe == nil {
		return fmt.Errorf("%w: an object is of the unknown kind %q", record.ErrStream, o.Kind)
	}
	records, err := i.tx.CreateBucketIfNotExists([]byte(o.Kind))
	if err != nil {
		return err
	}
	summary := i.summaries[o.Kind]
	summary.Version++
	key, stored, err := transcribe(o.Record, summary.Version)
	if err != nil {
		return fmt.Errorf("a %s: %w", o.Kind, err)
	}
	if records.Get(key) != nil {
		return fmt.Errorf("%w: a %s is there twice", record.ErrStream, o.Kind)
	}
	summary.add(stored)
	i.summaries[o.Kind] = summary
	i.count++
	return records.Put(key, stored)
}

// importers returns a function for each kind, which returns an exported object as this package stores it.
func importers(seal record.Sealer) map[string]func(content []byte, version uint64) (key, stored []byte, err error) {
	return map[string]func(content []byte, version uint64) (key, stored []byte, err error){
		"class":      importer[*machine.Class]("class", nil),
		"secret":     importer[*machine.Secret]("secret", seal),
		"deployment": importer[*deployment.Deployment]("deployment", nil),
		"set":        importer[*machineset.Set]("set", nil),
		"machine":    importer[*machine.Machine]("machine", nil),
		"pool":       importer[*machinepool.Pool]("pool", nil),
		"node":       importer[*machine.Node]("node", nil),
	}
}

func importer[T object.Object[T]](kind string, seal record.Sealer) func([]byte, uint64) (key, stored []byte, err error) {
	c := newCodec[T](kind, seal)
	return func(content []byte, version uint64) (key, stored []byte, err error) {
		if content, err = record.Open(seal, content); err != nil {
			return nil, nil, err
		}
		o, err := c.json.Decode(content)
		if err != nil {
			return nil, nil, err
		}
		meta := o.ObjectMeta()
		if meta.Name == "" || meta.UID == "" {
			return nil, nil, fmt.Errorf("%w: an object without name or UID", record.ErrStream)
		}
		meta.Version = strconv.FormatUint(version, 10)
		key, stored, _, err = c.encode(o)
		return key, stored, err
	}
}
