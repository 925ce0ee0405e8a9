package manager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// machineNamePlaceholder in user data stands for the machine's name.
const machineNamePlaceholder = "<<MACHINE_NAME>>"

// ErrSecretNamespace says that a class refers to a secret in a namespace that
// Options.SecretNamespaces does not allow. The error around it has the code
// INVALID_ARGUMENT and names class and secret.
var ErrSecretNamespace = errors.New("the secret is in a namespace that classes may not take secrets from")

// secrets finds what a class refers to. Cached objects are never changed.
type secrets struct {
	collection store.Collection[*machine.Secret] // nil: there are none
	namespaces []string                          // Options.SecretNamespaces
}

func (o *Options) secretsOfClasses() secrets { return secrets{o.Secrets, o.SecretNamespaces} }

// allows reports whether a class may take a secret.
func (s *secrets) allows(c *machine.Class, secret object.Key) bool {
	return s.namespaces == nil || secret.Namespace == c.Namespace || slices.Contains(s.namespaces, secret.Namespace)
}

// refusal is an ErrSecretNamespace if the class refers to a secret that it may not
// take.
func (s *secrets) refusal(c *machine.Class) error {
	if c == nil {
		return nil
	}
	for _, ref := range []*object.Key{c.SecretRef, c.CredentialsRef} {
		if ref == nil || ref.Name == "" {
			continue
		}
		if key := secretKey(c, ref); !s.allows(c, key) {
			return codes.Wrap(codes.InvalidArgument, ErrSecretNamespace, fmt.Sprintf(
				"class %s refers to secret %s, and classes may not take secrets from namespace %s", c.Key, key, key.Namespace))
		}
	}
	return nil
}

// refused is the answer to a call that is not made because the class may not take
// its secret. Any other error is passed on.
func refused(err error) (*machine.VM, error) {
	if errors.Is(err, ErrSecretNamespace) {
		return &machine.VM{Outcome: outcomeOf(err)}, nil
	}
	return nil, err
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
// credentials winning; nil if there is no secret. Absent ones are tolerated. An
// ErrSecretNamespace says that the class may not take one of them.
func (s *secrets) merged(ctx context.Context, c *machine.Class) (*machine.Secret, error) {
	if err := s.refusal(c); err != nil {
		return nil, err
	}
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

// each visits the secrets that are there and that the class may take.
func (s *secrets) each(ctx context.Context, c *machine.Class, do func(*machine.Secret)) error {
	if s.collection == nil || c == nil {
		return nil
	}
	for _, ref := range []*object.Key{c.SecretRef, c.CredentialsRef} {
		if ref == nil || ref.Name == "" || !s.allows(c, secretKey(c, ref)) {
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
		if ref == nil || ref.Name == "" || !s.allows(c, secretKey(c, ref)) {
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
