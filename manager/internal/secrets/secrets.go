// Package secrets finds the secrets that classes refer to. Cached objects are never changed.
package secrets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// machineNamePlaceholder in user data stands for the machine's name.
const machineNamePlaceholder = "<<MACHINE_NAME>>"

// tokenPlaceholder in user data stands for a bootstrap token.
const tokenPlaceholder = "<<BOOTSTRAP_TOKEN>>"

// ErrNamespace says that a class refers to a secret in a namespace that it may not take secrets from. The
// error around it has the code INVALID_ARGUMENT and names class and secret.
var ErrNamespace = errors.New("the secret is in a namespace that classes may not take secrets from")

// Secrets are the secrets that classes may take.
type Secrets struct {
	Collection store.Collection[*machine.Secret] // nil: there are none
	// Namespaces that classes may take secrets from beside their own. Nil: any. Empty: each class's own
	// alone.
	Namespaces []string
}

// Allows reports whether a class may take a secret.
func (s *Secrets) Allows(c *machine.Class, secret object.Key) bool {
	return s.Namespaces == nil || secret.Namespace == c.Namespace || slices.Contains(s.Namespaces, secret.Namespace)
}

// refusal returns an ErrNamespace if the class refers to a secret that it may not take.
func (s *Secrets) refusal(c *machine.Class) error {
	if c == nil {
		return nil
	}
	for _, ref := range []*object.Key{c.SecretRef, c.CredentialsRef} {
		if ref == nil || ref.Name == "" {
			continue
		}
		if key := index.SecretKey(c, ref); !s.Allows(c, key) {
			return codes.Wrap(codes.InvalidArgument, ErrNamespace, fmt.Sprintf(
				"class %s refers to secret %s, and classes may not take secrets from namespace %s", c.Key, key, key.Namespace))
		}
	}
	return nil
}

// Version changes when the data that Merged returns change, and with nothing else of the secrets:
// labels, finalizers and the like end no wait. Empty: there is no secret. It reads caches only.
//
// It is stored in statuses, which more people may read than secrets. So it has 32 bits of a hash:
// too few to check a guess of a value against. If two values have the same version, a change from one to
// the other does not end a wait early.
func (s *Secrets) Version(ctx context.Context, c *machine.Class) (string, error) {
	var data map[string][]byte
	err := s.Each(ctx, c, func(secret *machine.Secret) {
		if data == nil {
			data = make(map[string][]byte, len(secret.Data))
		}
		maps.Copy(data, secret.Data)
	})
	if data == nil || err != nil {
		return "", err
	}
	h := sha256.New()
	var size [8]byte
	for _, key := range slices.Sorted(maps.Keys(data)) {
		for _, part := range [...][]byte{[]byte(key), data[key]} {
			binary.BigEndian.PutUint64(size[:], uint64(len(part)))
			h.Write(size[:])
			h.Write(part)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:4]), nil
}

// Merged returns one secret with the data of both secrets of a class. If both have a key, the value of the
// credentials is used. Secrets that don't exist are ignored. Nil: there is none. An ErrNamespace says that
// the class may not take one of them.
func (s *Secrets) Merged(ctx context.Context, c *machine.Class) (*machine.Secret, error) {
	if err := s.refusal(c); err != nil {
		return nil, err
	}
	var out *machine.Secret
	err := s.Each(ctx, c, func(secret *machine.Secret) {
		if out == nil {
			out = secret.Clone()
			return
		}
		for k, v := range secret.Data {
			if out.Data == nil {
				out.Data = make(map[string][]byte)
			}
			out.Data[k] = bytes.Clone(v)
		}
	})
	return out, err
}

// Each visits the secrets that are there and that the class may take.
func (s *Secrets) Each(ctx context.Context, c *machine.Class, do func(*machine.Secret)) error {
	if s.Collection == nil || c == nil {
		return nil
	}
	for _, ref := range []*object.Key{c.SecretRef, c.CredentialsRef} {
		if ref == nil || ref.Name == "" || !s.Allows(c, index.SecretKey(c, ref)) {
			continue
		}
		secret, err := s.Collection.Get(ctx, index.SecretKey(c, ref))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("class %s: %w", c.Key, err)
		}
		do(secret)
	}
	return nil
}

// Missing names a secret that a class refers to and that does not exist.
func (s *Secrets) Missing(ctx context.Context, c *machine.Class) (object.Key, bool) {
	for _, ref := range []*object.Key{c.SecretRef, c.CredentialsRef} {
		if ref == nil || ref.Name == "" || !s.Allows(c, index.SecretKey(c, ref)) {
			continue
		}
		key := index.SecretKey(c, ref)
		if s.Collection == nil {
			return key, true
		}
		if _, err := s.Collection.Get(ctx, key); errors.Is(err, store.ErrNotFound) {
			return key, true
		}
	}
	return object.Key{}, false
}

// Problem says why no machine could be created from a class: what is wrong with the class, or with
// its secrets. joins says that machines join a cluster, for which they need user data. Empty:
// nothing.
func (s *Secrets) Problem(ctx context.Context, c *machine.Class, joins bool) (string, error) {
	if err := c.Validate(); err != nil {
		return err.Error(), nil
	}
	secret, err := s.Merged(ctx, c)
	if errors.Is(err, ErrNamespace) {
		return codes.Message(err), nil
	}
	if err != nil {
		return "", err
	}
	if key, missing := s.Missing(ctx, c); missing {
		return fmt.Sprintf("class %s refers to secret %s, which does not exist", c.Name, key), nil
	}
	if joins && (secret == nil || len(secret.Data[machine.UserData]) == 0) {
		return fmt.Sprintf("the secrets of class %s hold no %s: a machine could not join a cluster", c.Name, machine.UserData), nil
	}
	return "", nil
}

// PlaceName replaces the placeholder of the machine's name in user data, as it is and URL-encoded. secret
// is the caller's own copy.
func PlaceName(secret *machine.Secret, name string) { place(secret, machineNamePlaceholder, name) }

// HasTokenPlaceholder reports whether user data have a placeholder for a bootstrap token.
func HasTokenPlaceholder(userData []byte) bool {
	return bytes.Contains(userData, []byte(tokenPlaceholder)) ||
		bytes.Contains(userData, []byte(url.QueryEscape(tokenPlaceholder)))
}

// PlaceToken does what PlaceName does, for the placeholder of a bootstrap token.
func PlaceToken(secret *machine.Secret, token string) { place(secret, tokenPlaceholder, token) }

func place(secret *machine.Secret, placeholder, text string) {
	if secret == nil || secret.Data[machine.UserData] == nil {
		return
	}
	data := bytes.ReplaceAll(secret.Data[machine.UserData], []byte(placeholder), []byte(text))
	secret.Data[machine.UserData] = bytes.ReplaceAll(data, []byte(url.QueryEscape(placeholder)), []byte(url.QueryEscape(text)))
}
