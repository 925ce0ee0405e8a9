package bolt_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var (
	damagedFiles = flag.Int("damaged-files", 150, "how many files TestDamagedFiles damages")
	damagedSize  = flag.Int("damaged-machines", 120, "how many machines each of these files has")
)

// outcome is the result of opening a damaged file, for counting.
type outcome string

// requireReported opens a damaged file. It requires that Open or Damaged reports the damage, or that the
// file has all machines and can be written to. how describes the damage, for failure messages.
func requireReported(t require.TestingT, path string, held map[object.Key]*machine.Machine, how string) outcome {
	options := bolt.Options{Now: now, LockTimeout: -1}
	info, err := os.Stat(path)
	require.NoError(t, err)
	before := allocated()
	db, err := bolt.OpenRaw(path, options, bbolt.Options{NoSync: true})
	require.Less(t, allocated()-before, 64<<20+100*uint64(info.Size()), "%s: memory", how)
	if err != nil {
		requireExport(t, path, how)
		return refusal(t, err, how)
	}
	defer func() { _ = db.Close() }()
	listed, err := db.Machines().List(noContext, store.Query{})
	for _, m := range listed {
		require.Equal(t, held[m.Key], m, how)
	}
	if damaged := db.Damaged(); len(damaged) > 0 {
		require.ErrorIs(t, err, bolt.ErrDamaged, how)
		return "objects named"
	}
	require.NoError(t, err, how)
	require.Len(t, listed, len(held), how)
	written := writeSome(t, db, listed, how)
	require.NoError(t, db.Close(), how)
	again, err := bolt.OpenRaw(path, options, bbolt.Options{NoSync: true})
	require.NoError(t, err, "%s: opened again", how)
	defer func() { _ = again.Close() }()
	listed, err = again.Machines().List(noContext, store.Query{})
	require.NoError(t, err, how)
	require.Len(t, listed, len(held)+written, "%s: opened again", how)
	return "nothing lost"
}

// requireExport exports a file, and opens the new one if there is one.
func requireExport(t require.TestingT, path, how string) {
	to := path + ".export"
	exported, err := bolt.Salvage(path, to)
	if err != nil {
		require.NoFileExists(t, to, how)
		return
	}
	defer func() { _ = os.Remove(to) }()
	db, err := bolt.OpenRaw(to, bolt.Options{Now: now}, bbolt.Options{NoSync: true})
	require.NoError(t, err, how)
	defer func() { _ = db.Close() }()
	listed, err := db.Machines().List(noContext, store.Query{})
	require.NoError(t, err, how)
	require.Len(t, listed, exported.Objects["machine"], how)
}

// refusal returns the outcome for an error of Open, which must be one of this package.
func refusal(t require.TestingT, err error, how string) outcome {
	require.NotContains(t, err.Error(), "goroutine ", how)
	require.Less(t, len(err.Error()), 500, how)
	for _, typed := range []error{bolt.ErrDamaged, bolt.ErrForeign, bolt.ErrLayout} {
		if errors.Is(err, typed) {
			return outcome(typed.Error())
		}
	}
	require.NoError(t, err, how)
	return ""
}

// writeSome creates 20 machines, updates up to 20 of those listed, and returns how many it created.
func writeSome(t require.TestingT, db *bolt.DB, listed []*machine.Machine, how string) int {
	for i := range 20 {
		_, err := db.Machines().Create(noContext, newMachine(fmt.Sprint("z", i)))
		require.NoError(t, err, how)
		if i < len(listed) {
			_, err = db.Machines().Update(noContext, listed[i].Clone())
			require.NoError(t, err, how)
		}
	}
	return 20
}

// allocated returns how many bytes were allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestDamagedFiles: a store with a damaged file opens with all machines, or reports the damage. With
// -damaged-files=2000 -damaged-machines=2000 it takes minutes.
// Invariants: P43
func TestDamagedFiles(t *testing.T) {
	sound, held := fleetFile(t, *damagedSize)
	path, outcomes := newPath(t), map[outcome]int{}
	for n := range *damagedFiles {
		content, how := corrupt(rand.New(rand.NewPCG(uint64(n), 9)), sound)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		outcomes[requireReported(t, path, held, fmt.Sprintf("file %d: %s", n, how))]++
	}
	t.Log(outcomes)
	require.Positive(t, outcomes["nothing lost"])
	require.Positive(t, outcomes["damaged"])
}

// FuzzDamagedFile overwrites single bytes of a file. Four bytes of the input are a page, an offset in it
// (two bytes) and the new byte. seal makes the checksums of the meta pages right again.
// Invariants: P43
func FuzzDamagedFile(f *testing.F) {
	sound, held := fleetFile(f, 20)
	f.Add([]byte{0, 16 + 40, 0, 2}, true)                      // fewer pages
	f.Add([]byte{0, 16 + 16, 0, 3, 1, 16 + 16, 0, 3}, true)    // another root
	f.Add([]byte{3, 10, 0, 0, 4, 10, 0, 0, 5, 10, 0, 0}, true) // counts of zero
	f.Add([]byte{2, 8, 0, 16, 6, 8, 0, 1}, false)              // kinds of pages
	f.Fuzz(func(t *testing.T, edits []byte, seal bool) {
		content := bytes.Clone(sound)
		for ; len(edits) >= 4; edits = edits[4:] {
			page := int(edits[0]) % (len(content) / pageSize)
			content[page*pageSize+(int(edits[1])|int(edits[2])<<8)%pageSize] = edits[3]
		}
		if seal {
			content = resealed(content)
		}
		path := newPath(t)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		requireReported(t, path, held, "fuzz")
	})
}

// damagedPages returns the path of a copy of the file in which all pages with these flags are changed.
func damagedPages(t *testing.T, sound []byte, flags uint16, change func(page []byte, id int)) string {
	t.Helper()
	content, path := bytes.Clone(sound), newPath(t)
	for _, p := range pages(content, flags) {
		change(content[p*pageSize:(p+1)*pageSize], p)
	}
	require.NotEqual(t, sound, content, "nothing was changed")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// TestFreelistOfTooManyPages: a huge count in the freelist does not reserve memory.
// Invariants: P43
func TestFreelistOfTooManyPages(t *testing.T) {
	sound, _ := fleetFile(t, 120)
	requireRefused(t, damagedPages(t, sound, 0x10, func(page []byte, _ int) {
		native.PutUint16(page[10:], 0xffff)
		native.PutUint64(page[16:], 1<<40)
	}), bolt.ErrDamaged)
}

// TestPagesInACircle: a branch that is its own child is not followed endlessly.
// Invariants: P43
func TestPagesInACircle(t *testing.T) {
	sound, _ := fleetFile(t, 120)
	requireRefused(t, damagedPages(t, sound, 1, func(page []byte, id int) {
		native.PutUint64(page[16+8:], uint64(id))
	}), bolt.ErrDamaged)
}

// TestFreelistNamesUsedPages: a freelist with pages in use is damaged, because a commit would overwrite
// those pages.
// Invariants: P43
func TestFreelistNamesUsedPages(t *testing.T) {
	sound, _ := fleetFile(t, 120)
	leaf := pages(sound, 1)[0]
	requireRefused(t, damagedPages(t, sound, 0x10, func(page []byte, _ int) {
		for i := range int(native.Uint16(page[10:])) {
			native.PutUint64(page[16+8*i:], uint64(leaf+i))
		}
	}), bolt.ErrDamaged)
}

// TestExportWithoutAPage: Export leaves out the records of a damaged page, and no others.
func TestExportWithoutAPage(t *testing.T) {
	sound, held := fleetFile(t, 120)
	content, path := bytes.Clone(sound), newPath(t)
	inUse := 0
	for _, p := range pages(content, 2) { // some of these pages are free
		clear(content[p*pageSize : (p+1)*pageSize])
		require.NoError(t, os.WriteFile(path, content, 0o600))
		exported, err := bolt.Salvage(path, newPath(t))
		if err == nil && len(exported.Damaged) > 0 {
			require.Len(t, exported.Damaged, 1)
			require.Less(t, exported.Objects["machine"], len(held))
			require.Greater(t, exported.Objects["machine"], len(held)/2)
			inUse++
		}
		copy(content, sound)
	}
	require.Positive(t, inUse)
}

// TestRecordsMissing: Open notices missing, extra and old records, even if no page is damaged.
// Invariants: P43
func TestRecordsMissing(t *testing.T) {
	for name, change := range map[string]func(records *bbolt.Bucket) error{
		"one deleted":       func(records *bbolt.Bucket) error { return records.Delete(rawB) },
		"one back":          func(records *bbolt.Bucket) error { return records.Put([]byte("\x05fleetd"), records.Get(rawB)) },
		"version forgotten": func(records *bbolt.Bucket) error { return records.SetSequence(1) },
		"one older": func(records *bbolt.Bucket) error {
			return records.Put(rawB, bolt.NewRecord(rawB, []byte(`{"Name":"b","Namespace":"fleet","UID":"u","Version":"1"}`)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := damagedSecret(t, func(*bbolt.Bucket) error { return nil })
			file, err := bbolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, file.Update(func(tx *bbolt.Tx) error {
				// The summary has the ID of this commit, and the content of the last one.
				return errors.Join(bolt.UpdateSummary(tx), change(tx.Bucket([]byte("secret"))))
			}))
			require.NoError(t, file.Close())
			requireRefused(t, path, bolt.ErrDamaged)
			to := newPath(t)
			_, err = bolt.Salvage(path, to)
			require.NoError(t, err)
			_, err = open(t, to).Secrets().List(noContext, store.Query{})
			require.NoError(t, err)
		})
	}
}

// TestLastCommitMissing: Open notices if the meta page of the last commit is missing or an old one.
// Invariants: P43
func TestLastCommitMissing(t *testing.T) {
	sound, held := fleetFile(t, 20)
	newer := 0
	if native.Uint64(sound[pageSize+64:]) > native.Uint64(sound[64:]) {
		newer = pageSize
	}
	for name, change := range map[string]func(c []byte){
		"a bit of the newer meta page": func(c []byte) { c[newer+20] ^= 1 },
		"the newer meta page zero":     func(c []byte) { clear(c[newer : newer+pageSize]) },
		"the older meta page twice":    func(c []byte) { copy(c[newer:newer+pageSize], c[pageSize-newer:]) },
	} {
		t.Run(name, func(t *testing.T) {
			content, path := bytes.Clone(sound), newPath(t)
			change(content)
			require.NoError(t, os.WriteFile(path, content, 0o600))
			requireRefused(t, path, bolt.ErrDamaged)
			exported, err := bolt.Salvage(path, newPath(t))
			require.NoError(t, err)
			require.InDelta(t, len(held), exported.Objects["machine"], 20)
		})
	}
}
