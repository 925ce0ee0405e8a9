package bolt_test

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/record"
)

// mirrored seals by turning bytes around, which is enough to see where a secret is.
type mirrored struct{}

func (mirrored) Seal(content []byte) ([]byte, error) { return mirror(content), nil }
func (mirrored) Open(sealed []byte) ([]byte, error)  { return mirror(sealed), nil }

func mirror(b []byte) []byte {
	b = bytes.Clone(b)
	slices.Reverse(b)
	return b
}

const planted = "correct horse battery staple"

// plant stores a machine that is being deleted, and a secret.
func plant(t *testing.T, db *bolt.DB) (*machine.Machine, *machine.Secret) {
	t.Helper()
	ctx := t.Context()
	m, err := db.Machines().Create(ctx, &machine.Machine{Meta: object.Meta{
		Key: object.Key{Namespace: "fleet", Name: "a"}, Finalizers: []string{"example.org/hold"},
	}})
	require.NoError(t, err)
	m = m.Clone()
	m.Status.LastOperation.Message = "noted"
	_, err = db.Machines().UpdateStatus(ctx, m)
	require.NoError(t, err)
	require.NoError(t, db.Machines().Delete(ctx, m.Key, ""))
	m, err = db.Machines().Get(ctx, m.Key)
	require.NoError(t, err)
	s, err := db.Secrets().Create(ctx, &machine.Secret{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "s"}}, Data: map[string][]byte{"word": []byte(planted)},
	})
	require.NoError(t, err)
	return m, s
}

// TestMoved: a fleet that is exported and imported is the same, but for its versions.
func TestMoved(t *testing.T) {
	db, err := bolt.Open(newPath(t), bolt.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	m, s := plant(t, db)
	var export bytes.Buffer
	require.NoError(t, db.Export(&export))
	to := newPath(t)
	n, err := bolt.Import(to, bytes.NewReader(export.Bytes()), bolt.Options{})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	there, err := bolt.Open(to, bolt.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, there.Close()) }()
	gotM, err := there.Machines().Get(t.Context(), m.Key)
	require.NoError(t, err)
	gotS, err := there.Secrets().Get(t.Context(), s.Key)
	require.NoError(t, err)
	m, s = m.Clone(), s.Clone()
	m.Version, s.Version = gotM.Version, gotS.Version
	require.Equal(t, m, gotM)
	require.Equal(t, s, gotS)
	_, err = there.Machines().Create(t.Context(), &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "new"}}})
	require.NoError(t, err)
	_, err = bolt.Import(to, &export, bolt.Options{})
	require.ErrorIs(t, err, fs.ErrExist)
}

// TestImportRefused: from an export that is not complete, no file is made.
func TestImportRefused(t *testing.T) {
	db, err := bolt.Open(newPath(t), bolt.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	plant(t, db)
	var export bytes.Buffer
	require.NoError(t, db.Export(&export))
	whole := export.String()
	lines := strings.SplitAfter(whole, "\n")
	for name, bad := range map[string]string{
		"empty": "", "broken off": whole[:len(whole)/2], "without its end": strings.Join(lines[:3], ""),
		"twice": lines[0] + lines[1] + lines[1] + lines[3], "of another kind": strings.Replace(whole, `"kind":"machine"`, `"kind":"gadget"`, 1),
		"with a field": strings.Replace(whole, `"object":{`, `"object":{"Newer":1,`, 1),
	} {
		to := newPath(t)
		_, err := bolt.Import(to, strings.NewReader(bad), bolt.Options{})
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), planted)
		left, err := os.ReadDir(filepath.Dir(to))
		require.NoError(t, err)
		require.Empty(t, left, name)
	}
}

// TestSealedSecrets: a sealed secret is nowhere in the file, a salvaged copy or an export. Without the key, nothing is
// read of it, and the other objects are.
func TestSealedSecrets(t *testing.T) {
	path := newPath(t)
	db, err := bolt.Open(path, bolt.Options{Seal: mirrored{}})
	require.NoError(t, err)
	m, s := plant(t, db)
	var export bytes.Buffer
	require.NoError(t, db.Export(&export))
	require.NoError(t, db.Close())
	salvaged, moved := newPath(t), newPath(t)
	_, err = bolt.Salvage(path, salvaged)
	require.NoError(t, err)
	_, err = bolt.Import(moved, bytes.NewReader(export.Bytes()), bolt.Options{Seal: mirrored{}})
	require.NoError(t, err)
	_, err = bolt.Import(newPath(t), bytes.NewReader(export.Bytes()), bolt.Options{})
	require.ErrorIs(t, err, record.ErrSealed)
	texts := map[string]string{"the export": export.String()}
	for _, file := range []string{path, salvaged, moved} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[file] = string(content)
		again, err := bolt.Open(file, bolt.Options{Seal: mirrored{}})
		require.NoError(t, err)
		got, err := again.Secrets().Get(t.Context(), s.Key)
		require.NoError(t, err)
		require.Equal(t, planted, string(got.Data["word"]))
		require.NoError(t, again.Close())
	}
	for where, text := range texts {
		require.NotContains(t, text, planted, where)
		require.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(planted)), where)
	}
	without, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, without.Close()) }()
	_, err = without.Secrets().List(t.Context(), store.Query{})
	require.ErrorContains(t, err, "sealed")
	_, err = without.Machines().Get(t.Context(), m.Key)
	require.NoError(t, err)
	require.ErrorContains(t, without.Export(&export), "sealed")
}
