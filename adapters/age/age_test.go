package age_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	upstream "filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/age"
	"github.com/millwright-go/millwright/store/record"
)

const word = "correct horse battery staple"

// newKey makes a key file, and returns its path and its text.
func newKey(t *testing.T) (path, text string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "key")
	require.NoError(t, age.GenerateKey(path))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, string(content)
}

func open(t *testing.T, path string) record.Sealer {
	t.Helper()
	s, err := age.Open(path)
	require.NoError(t, err)
	return s
}

// TestSealed: what was sealed is not readable, and can be opened with the key.
func TestSealed(t *testing.T) {
	path, _ := newKey(t)
	s := open(t, path)
	stored, err := record.Seal(s, []byte(`{"word":"`+word+`"}`))
	require.NoError(t, err)
	require.NotContains(t, string(stored), word)
	content, err := record.Open(open(t, path), stored)
	require.NoError(t, err)
	require.JSONEq(t, `{"word":"`+word+`"}`, string(content))
	again, err := record.Seal(s, []byte(`{"word":"`+word+`"}`))
	require.NoError(t, err)
	require.NotEqual(t, stored, again, "equal contents are not seen to be equal")
}

// TestRotated: a new key in front of the old one seals, and both open. Without the old one, what it has sealed can't be
// opened.
func TestRotated(t *testing.T) {
	oldPath, old := newKey(t)
	newPath, fresh := newKey(t)
	bySold, err := record.Seal(open(t, oldPath), []byte(`{}`))
	require.NoError(t, err)
	both := filepath.Join(t.TempDir(), "both")
	require.NoError(t, os.WriteFile(both, []byte(fresh+old), 0o600))
	content, err := record.Open(open(t, both), bySold)
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(content))
	byBoth, err := record.Seal(open(t, both), []byte(`{}`))
	require.NoError(t, err)
	_, err = record.Open(open(t, newPath), byBoth)
	require.NoError(t, err)
	_, err = record.Open(open(t, newPath), bySold)
	require.ErrorIs(t, err, record.ErrSealed)
	_, err = record.Open(nil, bySold)
	require.ErrorIs(t, err, record.ErrSealed)
}

// TestDamaged: a record that was changed is not opened, and the error says nothing of it.
func TestDamaged(t *testing.T) {
	path, _ := newKey(t)
	s := open(t, path)
	sealed, err := s.Seal([]byte(word))
	require.NoError(t, err)
	for _, at := range []int{0, len(sealed) / 2, len(sealed) - 1} {
		changed := append([]byte(nil), sealed...)
		changed[at] ^= 1
		_, err = s.Open(changed)
		require.Error(t, err)
		require.NotContains(t, err.Error(), word)
	}
	_, err = s.Open(nil)
	require.Error(t, err)
}

// TestKeys: a file that has no keys is refused with an error that has nothing of it. A key file is not replaced.
func TestKeys(t *testing.T) {
	path, text := newKey(t)
	secret := strings.Fields(text[strings.Index(text, "AGE-SECRET"):])[0]
	for name, content := range map[string]string{
		"empty": "", "another text": "hush", "a cut key": secret[:len(secret)-1], "a key and more": secret + " hush",
	} {
		bad := filepath.Join(t.TempDir(), "bad")
		require.NoError(t, os.WriteFile(bad, []byte(content), 0o600))
		_, err := age.Open(bad)
		require.ErrorIs(t, err, age.ErrKey, name)
		require.ErrorContains(t, err, bad)
		require.NotContains(t, err.Error(), "hush")
		require.NotContains(t, err.Error(), "AGE-SECRET")
	}
	require.ErrorIs(t, age.GenerateKey(path), fs.ErrExist)
	_, err := age.Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
}

// TestWriteOnly: without an identity, secrets can be written and not read.
func TestWriteOnly(t *testing.T) {
	identity, err := upstream.GenerateX25519Identity()
	require.NoError(t, err)
	writer := age.New([]upstream.Recipient{identity.Recipient()}, nil)
	sealed, err := writer.Seal([]byte(word))
	require.NoError(t, err)
	_, err = writer.Open(sealed)
	require.Error(t, err)
	content, err := age.New(nil, []upstream.Identity{identity}).Open(sealed)
	require.NoError(t, err)
	require.Equal(t, word, string(content))
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "age")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	key := filepath.Join(dir, "fleet.key")
	if err := age.GenerateKey(key); err != nil {
		panic(err)
	}
	seal, err := age.Open(key) // for bolt.Options, etcd.Options or postgres.Options
	if err != nil {
		panic(err)
	}
	sealed, err := seal.Seal([]byte("token"))
	if err != nil {
		panic(err)
	}
	content, err := seal.Open(sealed)
	fmt.Println(string(content), err)
	// Output: token <nil>
}
