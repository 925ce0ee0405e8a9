package bolt_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// damagedSecret returns the path of a file with the secrets a, b and c, after change was applied to their bucket.
func damagedSecret(t *testing.T, change func(*bbolt.Bucket) error) string {
	t.Helper()
	path := newPath(t)
	db, err := bolt.Open(path, bolt.Options{Now: now})
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		_, err := db.Secrets().Create(noContext, &machine.Secret{
			Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}},
			Data: map[string][]byte{"password": []byte("hunter2")},
		})
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	edit(t, path, func(tx *bbolt.Tx) error { return change(tx.Bucket([]byte("secret"))) })
	return path
}

// rawB is the raw key of secret b.
var rawB = []byte("\x05fleetb")

// changeB returns a change of the bucket: it replaces the record of b.
func changeB(change func(record []byte) []byte) func(*bbolt.Bucket) error {
	return func(records *bbolt.Bucket) error {
		record := append([]byte(nil), records.Get(rawB)...)
		return records.Put(rawB, change(record))
	}
}

// TestDamageIsNamed: each kind of damage is recognized. The error names the object, and shows no content.
func TestDamageIsNamed(t *testing.T) {
	for want, change := range map[bolt.Damage]func([]byte) []byte{
		bolt.DamageFormat:   func(r []byte) []byte { r[0] = 9; return r },
		bolt.DamageChecksum: func(r []byte) []byte { r[len(r)/2] ^= 1; return r },
		bolt.DamageContent: func([]byte) []byte {
			return bolt.NewRecord(rawB, []byte(`{"Name":"b","Namespace":"fleet","UID":"u","Version":"1","Pass":"hunter2"}`))
		},
		bolt.DamageIdentity: func([]byte) []byte {
			return bolt.NewRecord(rawB, []byte(`{"Name":"a","Namespace":"fleet","UID":"u","Version":"1"}`))
		},
	} {
		db := open(t, damagedSecret(t, changeB(change)))
		damaged := db.Damaged()
		require.Len(t, damaged, 1)
		require.Equal(t, want, damaged[0].Damage)
		require.Equal(t, "secret fleet/b "+want.String(), damaged[0].Error())
	}
	const sound = `{"Name":"b","Namespace":"fleet","UID":"u","Version":"1"}`
	for name, record := range map[string][]byte{
		"empty":                       {},
		"the format only":             {1},
		"no content":                  {1, 0, 0, 0, 0},
		"null instead of an object":   bolt.NewRecord(rawB, []byte("null")),
		"no UID":                      bolt.NewRecord(rawB, []byte(`{"Name":"b","Namespace":"fleet","Version":"1"}`)),
		"no version":                  bolt.NewRecord(rawB, []byte(`{"Name":"b","Namespace":"fleet","UID":"u"}`)),
		"more after the object":       bolt.NewRecord(rawB, []byte(sound+" {}")),
		"the checksum of another key": bolt.NewRecord([]byte("\x05fleeta"), []byte(sound)),
	} {
		db := open(t, damagedSecret(t, changeB(func([]byte) []byte { return record })))
		require.Len(t, db.Damaged(), 1, name)
	}
}

// TestDamagedAmongOthers: calls for a damaged object and lists of its kind fail. All other calls work.
func TestDamagedAmongOthers(t *testing.T) {
	db := open(t, damagedSecret(t, changeB(func(r []byte) []byte { r[7] ^= 1; return r })))
	secrets, b := db.Secrets(), object.Key{Namespace: "fleet", Name: "b"}
	requireDamaged := func(err error) {
		t.Helper()
		var damaged *bolt.DamagedError
		require.ErrorAs(t, err, &damaged)
		require.ErrorIs(t, err, bolt.ErrDamaged)
		require.Equal(t, b, damaged.Key)
		require.NotContains(t, err.Error(), "hunter2")
		for _, other := range []error{store.ErrNotFound, store.ErrAlreadyExists, store.ErrConflict} {
			require.False(t, errors.Is(err, other))
		}
	}
	_, err := secrets.Get(noContext, b)
	requireDamaged(err)
	_, err = secrets.Live().Get(noContext, b)
	requireDamaged(err)
	_, err = secrets.Create(noContext, &machine.Secret{Meta: object.Meta{Key: b}})
	requireDamaged(err)
	_, err = secrets.Update(noContext, &machine.Secret{Meta: object.Meta{Key: b, Version: "2"}})
	requireDamaged(err)
	_, err = secrets.UpdateStatus(noContext, &machine.Secret{Meta: object.Meta{Key: b, Version: "2"}})
	requireDamaged(err)
	requireDamaged(secrets.Delete(noContext, b, ""))
	listed, err := secrets.List(noContext, store.Query{})
	requireDamaged(err)
	require.Len(t, listed, 2)
	_, err = secrets.Live().List(noContext, store.Query{})
	requireDamaged(err)

	for _, name := range []string{"a", "c"} {
		o, err := secrets.Get(noContext, object.Key{Namespace: "fleet", Name: name})
		require.NoError(t, err)
		o = o.Clone()
		o.Data["more"] = nil
		_, err = secrets.Update(noContext, o.Clone())
		require.NoError(t, err)
	}
	seen := 0
	for change, err := range secrets.Watch(noContext) {
		require.NoError(t, err)
		require.NotEqual(t, b, change.New.Key)
		if seen++; seen == 2 {
			break
		}
	}
	_, err = db.Machines().List(noContext, store.Query{})
	require.NoError(t, err, "a list of another kind must work")
}

// TestExport: Export copies all objects that can be read to a new file, and names the others.
func TestExport(t *testing.T) {
	path := damagedSecret(t, changeB(func(r []byte) []byte { return r[:3] }))
	to := newPath(t)
	exported, err := bolt.Salvage(path, to)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"secret": 2}, exported.Objects)
	require.Len(t, exported.Damaged, 1)
	require.EqualError(t, exported.Damaged[0], "secret fleet/b is stored in an unknown format")

	secrets := open(t, to).Secrets()
	listed, err := secrets.List(noContext, store.Query{})
	require.NoError(t, err)
	require.Len(t, listed, 2)
	old, err := open(t, path).Secrets().Get(noContext, listed[1].Key)
	require.NoError(t, err)
	require.Equal(t, old, listed[1])
	created, err := secrets.Create(noContext, &machine.Secret{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "b"}}})
	require.NoError(t, err)
	require.Equal(t, "4", created.Version, "no version may be assigned twice")
}

// TestExportMakesNoFile: Export leaves the destination alone if a file is there already, and creates none if no
// object can be read, or if a newer program has written the store.
func TestExportMakesNoFile(t *testing.T) {
	refused := func(path string, want error) {
		t.Helper()
		to := newPath(t)
		_, err := bolt.Salvage(path, to)
		require.ErrorIs(t, err, want)
		require.NoFileExists(t, to)
	}
	path := damagedSecret(t, func(*bbolt.Bucket) error { return nil })
	_, err := bolt.Salvage(path, path)
	require.ErrorIs(t, err, os.ErrExist)
	sound, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("x"), len(sound)), 0o600))
	refused(path, bolt.ErrForeign)
	content := bytes.Clone(sound)
	clear(content[2*pageSize:])
	require.NoError(t, os.WriteFile(path, content, 0o600))
	refused(path, bolt.ErrDamaged)
	require.NoError(t, os.WriteFile(path, sound, 0o600))
	edit(t, path, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("millwright")).Put([]byte("layout"), []byte("2"))
	})
	refused(path, bolt.ErrLayout)
}

// TestExportOfEachKind: Export copies objects of every kind.
func TestExportOfEachKind(t *testing.T) {
	path := newPath(t)
	db := open(t, path)
	require.NoError(t, create(db.Machines(), &machine.Machine{}))
	require.NoError(t, create(db.Classes(), &machine.Class{}))
	require.NoError(t, create(db.Secrets(), &machine.Secret{}))
	require.NoError(t, create(db.Sets(), &machineset.Set{}))
	require.NoError(t, create(db.Deployments(), &deployment.Deployment{}))
	require.NoError(t, create(db.Pools(), &machinepool.Pool{}))
	require.NoError(t, create(db.Nodes(), &machine.Node{}))
	require.NoError(t, db.Close())
	exported, err := bolt.Salvage(path, newPath(t))
	require.NoError(t, err)
	require.Empty(t, exported.Damaged)
	require.Len(t, exported.Objects, len(db.Kinds()))
}

func create[T object.Object[T]](objects store.Collection[T], o T) error {
	o.ObjectMeta().Key = object.Key{Name: "a"}
	_, err := objects.Create(noContext, o)
	return err
}

// TestDiscard: a discarded object is gone, also when the file is opened again.
func TestDiscard(t *testing.T) {
	path := damagedSecret(t, func(records *bbolt.Bucket) error {
		// These keys claim a namespace of 9 bytes and have fewer.
		for _, key := range []string{"\x09fleet", "\x09fleets"} {
			if err := records.Put([]byte(key), []byte("?")); err != nil {
				return err
			}
		}
		return records.Put(rawB, nil)
	})
	db, err := bolt.Open(path, bolt.Options{Now: now})
	require.NoError(t, err)
	damaged := db.Damaged()
	require.Len(t, damaged, 3)
	require.Equal(t, bolt.DamageKey, damaged[1].Damage)
	require.Contains(t, damaged[1].Error(), "09666c656574")
	for _, d := range damaged {
		require.NoError(t, db.Discard(noContext, d))
		require.ErrorIs(t, db.Discard(noContext, d), store.ErrNotFound)
	}
	require.Error(t, db.Discard(noContext, nil))
	require.Empty(t, db.Damaged())
	listed, err := db.Secrets().List(noContext, store.Query{})
	require.NoError(t, err)
	require.Len(t, listed, 2)
	_, err = db.Secrets().Create(noContext, &machine.Secret{Meta: object.Meta{Key: damaged[0].Key}})
	require.NoError(t, err)
	require.NoError(t, db.Close())

	db = open(t, path)
	require.Empty(t, db.Damaged())
	listed, err = db.Secrets().List(noContext, store.Query{})
	require.NoError(t, err)
	require.Len(t, listed, 3)
}

// TestSequenceBehindItsObjects: if another program has lowered the bucket's sequence, which holds the last version
// assigned, no version is assigned twice.
func TestSequenceBehindItsObjects(t *testing.T) {
	path := damagedSecret(t, func(records *bbolt.Bucket) error { return records.SetSequence(0) })
	secrets := open(t, path).Secrets()
	listed, err := secrets.List(noContext, store.Query{})
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, o := range listed {
		seen[o.Version] = true
	}
	for _, o := range listed {
		o, err = secrets.Update(noContext, o.Clone())
		require.NoError(t, err)
		require.False(t, seen[o.Version], "version %s comes twice", o.Version)
		seen[o.Version] = true
	}
}
