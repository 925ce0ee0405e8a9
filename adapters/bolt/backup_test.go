package bolt_test

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// hookedBuffer calls do when the first byte is written.
type hookedBuffer struct {
	bytes.Buffer
	once sync.Once
	do   func()
}

func (b *hookedBuffer) Write(p []byte) (int, error) {
	b.once.Do(b.do)
	return b.Buffer.Write(p)
}

// TestBackup: a backup is a copy of one instant. Writes made meanwhile are not in it, and don't have to
// wait.
func TestBackup(t *testing.T) {
	db := open(t, newPath(t))
	things := kind(t, db)
	var kept []*storetest.Object
	for _, name := range []string{"a", "b", "c"} {
		o, err := things.Create(noContext, thing(name))
		require.NoError(t, err)
		kept = append(kept, o)
	}
	_, err := db.Secrets().Create(noContext, &machine.Secret{
		Meta: object.Meta{Key: object.Key{Name: "s"}}, Data: map[string][]byte{"k": []byte("v")},
	})
	require.NoError(t, err)
	w := &hookedBuffer{do: func() {
		require.NoError(t, things.Delete(noContext, kept[0].Key, ""))
		for range 200 {
			o, err := things.Get(noContext, kept[1].Key)
			require.NoError(t, err)
			o = o.Clone()
			o.Spec.Replicas++
			_, err = things.Update(noContext, o)
			require.NoError(t, err)
		}
		_, err := things.Create(noContext, thing("d"))
		require.NoError(t, err)
	}}
	n, err := db.Backup(w)
	require.NoError(t, err)
	require.EqualValues(t, w.Len(), n)

	path := newPath(t)
	require.NoError(t, os.WriteFile(path, w.Bytes(), 0o600))
	restored := open(t, path)
	others := kind(t, restored)
	listed, err := others.List(noContext, store.Query{})
	require.NoError(t, err)
	require.ElementsMatch(t, kept, listed)
	secret, err := restored.Secrets().Get(noContext, object.Key{Name: "s"})
	require.NoError(t, err)
	require.Equal(t, []byte("v"), secret.Data["k"])
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("pipe")

// TestBackupFails: an error of the destination is returned.
func TestBackupFails(t *testing.T) {
	db := open(t, newPath(t))
	_, err := db.Backup(broken{})
	require.ErrorContains(t, err, "pipe")
	_, err = db.Machines().Create(noContext, newMachine("a"))
	require.NoError(t, err, "the store must still work")
}

// TestUIDsAfterRestore: after a restore of a backup, a new object must not get the UID of an object that
// was created after the backup. Otherwise that object's VM would look like the new one's.
func TestUIDsAfterRestore(t *testing.T) {
	db := open(t, newPath(t))
	var copied bytes.Buffer
	_, err := db.Backup(&copied)
	require.NoError(t, err)
	path := newPath(t)
	require.NoError(t, os.WriteFile(path, copied.Bytes(), 0o600))
	lost, err := db.Machines().Create(noContext, newMachine("a"))
	require.NoError(t, err)
	created, err := open(t, path).Machines().Create(noContext, newMachine("a"))
	require.NoError(t, err)
	require.NotEqual(t, lost.UID, created.UID)
}
