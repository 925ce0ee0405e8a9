package manager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// machineNamePlaceholder in user data stands for the machine's name.
const machineNamePlaceholder = "<<MACHINE_NAME>>"

// secrets finds what a class refers to. Cached objects are never changed.
type secrets struct {
	collection store.Collection[*machine.Secret] // nil: there are none
}

// version changes whenever what merged returns may change. It reads caches only.
func (s *secrets) version(ctx context.Context, c *machine.Class) (string, error) {
	version := ""
	err := s.each(ctx, c, func(secret *machine.Secret) {
		if version != "" {
			version += " "
		}
		version += secret.UID + "/" + secret.Version
	})
	return version, err
}

// merged is the data of a class's secrets in one, under the class's name, the
// credentials winning; nil if there is no secret. Absent ones are tolerated.
func (s *secrets) merged(ctx context.Context, c *machine.Class) (*machine.Secret, error) {
	var out *machine.Secret
	err := s.each(ctx, c, func(secret *machine.Secret) {
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

func (s *secrets) each(ctx context.Context, c *machine.Class, do func(*machine.Secret)) error {
	if s.collection == nil || c == nil {
		return nil
	}
	for _, ref := range []*object.Key{c.SecretRef, c.CredentialsRef} {
		if ref == nil || ref.Name == "" {
			continue
		}
		secret, err := s.collection.Get(ctx, secretKey(c, ref))
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

// missing names a secret that a class refers to and that does not exist.
func (s *secrets) missing(ctx context.Context, c *machine.Class) (object.Key, bool) {
	for _, ref := range []*object.Key{c.SecretRef, c.CredentialsRef} {
		if ref == nil || ref.Name == "" {
			continue
		}
		key := secretKey(c, ref)
		if s.collection == nil {
			return key, true
		}
		if _, err := s.collection.Get(ctx, key); errors.Is(err, store.ErrNotFound) {
			return key, true
		}
	}
	return object.Key{}, false
}

// address puts the machine's name into the user data, as it is and
// URL-encoded. secret is the caller's own copy.
func address(secret *machine.Secret, name string) {
	if secret == nil || secret.Data[machine.UserData] == nil {
		return
	}
	data := secret.Data[machine.UserData]
	data = bytes.ReplaceAll(data, []byte(machineNamePlaceholder), []byte(name))
	encoded := url.QueryEscape(machineNamePlaceholder)
	secret.Data[machine.UserData] = bytes.ReplaceAll(data, []byte(encoded), []byte(url.QueryEscape(name)))
}
