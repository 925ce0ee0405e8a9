// Package age seals the secrets of a fleet with filippo.io/age, so that who reads the store, a backup or an export
// does not read them. It is a module of its own: go get it in addition to the library's root module.
//
//	seal, err := age.Open("fleet.key")
//	…
//	db, err := bolt.Open("state/fleet.db", bolt.Options{Seal: seal})
//
// age-keygen makes a key file; GenerateKey does so in a program.
package age

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"filippo.io/age"

	"github.com/millwright-go/millwright/store/record"
)

// ErrKey says that a key file can't be used.
var ErrKey = errors.New("not a file of age keys")

// sealer implements record.Sealer.
type sealer struct {
	recipients []age.Recipient
	identities []age.Identity
}

// Open returns a Sealer with the keys of a file, as age-keygen makes it: a line for each X25519 identity; empty lines and
// lines that begin with # do not count. The first one seals, and all of them open. So to change keys, put the new one
// first, restart all programs, and remove the old one when every secret was written since. The error is that of
// reading the file, or ErrKey; it contains no key.
func Open(path string) (record.Sealer, error) {
	file, err := os.Open(path) //nolint:gosec // the caller's path
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	identities, err := age.ParseIdentities(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, ErrKey) // the error may hold a part of a line
	}
	first, ok := identities[0].(*age.X25519Identity)
	if !ok {
		return nil, fmt.Errorf("%s: %w: the first is no X25519 identity", path, ErrKey)
	}
	return New([]age.Recipient{first.Recipient()}, identities), nil
}

// New returns a Sealer that seals for all recipients, and opens with any of the identities. A program that only writes
// secrets needs no identity, and can't read them then.
func New(recipients []age.Recipient, identities []age.Identity) record.Sealer {
	return &sealer{recipients, identities}
}

// GenerateKey writes a new key file with mode 0600. If there is a file at path, the error is fs.ErrExist.
func GenerateKey(path string) error {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the caller's path
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "# public key: %s\n%s\n", identity.Recipient(), identity)
	return errors.Join(err, file.Sync(), file.Close())
}

// Seal implements record.Sealer.
func (s *sealer) Seal(content []byte) ([]byte, error) {
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, s.recipients...)
	if err != nil {
		return nil, fmt.Errorf("age: %w", err)
	}
	if _, err := w.Write(content); err != nil {
		return nil, fmt.Errorf("age: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("age: %w", err)
	}
	return sealed.Bytes(), nil
}

// Open implements record.Sealer.
func (s *sealer) Open(sealed []byte) ([]byte, error) {
	if len(s.identities) == 0 {
		return nil, errors.New("age: there is no key to open it")
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), s.identities...)
	if err != nil {
		return nil, fmt.Errorf("age: %w", err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("age: %w", err)
	}
	return content, nil
}
