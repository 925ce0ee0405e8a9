package secrets_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestP55VersionIsThatOfTheValues: while a class's two secrets are changed and made again, the version changes if
// and only if the driver gets other data.
// Invariants: P55
func TestP55VersionIsThatOfTheValues(t *testing.T) {
	keys := []object.Key{{Namespace: "f", Name: "boot"}, {Namespace: "f", Name: "login"}}
	class := &machine.Class{SecretRef: &keys[0], CredentialsRef: &keys[1]}
	class.Key = object.Key{Namespace: "f", Name: "small"}
	rapid.Check(t, func(t *rapid.T) {
		kept := store.NewMemory[*machine.Secret](func() time.Time { return time.Unix(0, 0) }, nil)
		s := &secrets.Secrets{Collection: kept}
		look := func() (string, *machine.Secret) {
			version, err := s.Version(t.Context(), class)
			require.NoError(t, err)
			merged, err := s.Merged(t.Context(), class)
			require.NoError(t, err)
			return version, merged
		}
		text := rapid.SampledFrom([]string{"", "a", "b", "ab"})
		version, merged := look()
		require.Empty(t, version)
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			secret := &machine.Secret{Meta: object.Meta{Key: rapid.SampledFrom(keys).Draw(t, "secret")}, Data: map[string][]byte{}}
			if was, err := kept.Get(t.Context(), secret.Key); err == nil {
				secret = was.Clone()
			} else {
				_, err = kept.Create(t.Context(), secret)
				require.NoError(t, err)
			}
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				secret.Labels = map[string]string{"a": text.Draw(t, "label")}
			case 1:
				secret.Finalizers = []string{"f/" + text.Draw(t, "finalizer")}
			case 2:
				secret.Data[text.Draw(t, "key")] = []byte(text.Draw(t, "value"))
			case 3:
				delete(secret.Data, text.Draw(t, "key"))
			case 4: // it is made again, and only its UID differs
				if len(secret.Finalizers) == 0 && secret.UID != "" {
					require.NoError(t, kept.Delete(t.Context(), secret.Key, secret.UID))
					secret.UID, secret.Version = "", ""
					_, err := kept.Create(t.Context(), secret)
					require.NoError(t, err)
				}
			}
			if now, err := kept.Get(t.Context(), secret.Key); err == nil {
				secret.UID, secret.Version = now.UID, now.Version
				_, err = kept.Update(t.Context(), secret)
				require.NoError(t, err)
			}
			next, given := look()
			same := merged != nil && given != nil && maps.EqualFunc(merged.Data, given.Data, func(a, b []byte) bool { return string(a) == string(b) })
			require.Equal(t, same, version == next, "%s, then %s", version, next)
			version, merged = next, given
		}
	})
}
