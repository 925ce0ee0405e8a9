package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Sealer encrypts records, so that who reads the store, its backups or an export does not read them. It is safe
// for concurrent use. adapters/age has one.
type Sealer interface {
	// Seal encrypts a record.
	Seal(content []byte) ([]byte, error)
	// Open returns the record that Seal was given. The error holds no part of it.
	Open(sealed []byte) ([]byte, error)
}

// ErrSealed says that a record is sealed, and can't be opened here.
var ErrSealed = errors.New("is sealed, and can't be opened here")

// sealed is a record that was sealed.
type sealed struct {
	Sealed []byte
}

// Seal returns the record of content: sealed, or content itself if s is nil.
func Seal(s Sealer, content []byte) ([]byte, error) {
	if s == nil {
		return content, nil
	}
	closed, err := s.Seal(content)
	if err != nil {
		return nil, fmt.Errorf("it can't be sealed: %w", err)
	}
	return json.Marshal(sealed{closed})
}

// Open returns the content of a record that Seal has returned. A record that was not sealed is returned as
// it is, so that a store can begin to seal. The error is ErrSealed.
func Open(s Sealer, content []byte) ([]byte, error) {
	if !bytes.HasPrefix(content, []byte(`{"Sealed":`)) {
		return content, nil
	}
	var closed sealed
	if err := json.Unmarshal(content, &closed); err != nil {
		return nil, ErrContent
	}
	if s == nil {
		return nil, ErrSealed
	}
	open, err := s.Open(closed.Sealed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSealed, err)
	}
	return open, nil
}
