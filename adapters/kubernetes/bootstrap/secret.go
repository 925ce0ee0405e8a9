package bootstrap

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/manager"
)

// The server's authenticator determines the format of bootstrap tokens.
const (
	idLength     = 6
	secretLength = 16
	alphabet     = "0123456789abcdefghijklmnopqrstuvwxyz"
	namePrefix   = "bootstrap-token-"

	keyDescription    = "description"
	keyID             = "token-id"
	keySecret         = "token-secret"
	keyExpiration     = "expiration"
	keyAuthentication = "usage-bootstrap-authentication"
	keySigning        = "usage-bootstrap-signing"
	keyGroups         = "auth-extra-groups"
)

// AnnotationOwner is the annotation of a token's secret that names its owner: the owner's UID,
// or its key if it has none. A secret without it belongs to another program and is never touched.
const AnnotationOwner = "millwright-go/token-of"

// ID returns the public half of an owner's token: six characters, digits or small letters, that follow
// from the owner's UID, or from its key if it has none. There are two billion IDs, so two owners with a
// token at the same time hardly ever have the same ID. If they do, the second waits, see ErrTaken.
func ID(of manager.TokenOwner) string {
	sum := sha256.Sum256([]byte("bootstrap token of " + identity(of)))
	n := binary.BigEndian.Uint64(sum[:])
	id := make([]byte, idLength)
	for i := range id {
		id[i] = alphabet[n%uint64(len(alphabet))]
		n /= uint64(len(alphabet))
	}
	return string(id)
}

// identity returns the text that identifies an owner: its UID, or its key if it has none.
func identity(of manager.TokenOwner) string {
	if of.UID != "" {
		return of.UID
	}
	if of.Pool {
		return of.String()
	}
	return of.Key.String()
}

// random returns a new secret half. It skips bytes that would make some characters more likely.
func random(from io.Reader) (string, error) {
	const even = 256 / len(alphabet) * len(alphabet)
	out := make([]byte, 0, secretLength)
	for one := make([]byte, 1); len(out) < secretLength; {
		if _, err := io.ReadFull(from, one); err != nil {
			return "", err
		}
		if int(one[0]) < even {
			out = append(out, alphabet[int(one[0])%len(alphabet)])
		}
	}
	return string(out), nil
}

// blank returns the secret of an owner's token, without data.
func blank(of manager.TokenOwner) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: namePrefix + ID(of), Namespace: metav1.NamespaceSystem,
			Annotations: map[string]string{AnnotationOwner: identity(of)},
		},
		Type: corev1.SecretTypeBootstrapToken,
	}
}

// fill writes everything but the secret half into a token's secret.
func (t *Tokens) fill(secret *corev1.Secret, of manager.TokenOwner, until time.Time) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range map[string]string{
		keyDescription:    description(of),
		keyID:             ID(of),
		keyExpiration:     expiration(t.clock.serverTime(until)),
		keyAuthentication: "true",
		keySigning:        "true",
		keyGroups:         t.groups,
	} {
		secret.Data[key] = []byte(value)
	}
	if t.groups == "" {
		delete(secret.Data, keyGroups)
	}
}

func description(of manager.TokenOwner) string {
	if of.Pool {
		return "For " + of.String() + ", renewed while machines of it may join."
	}
	return "For " + of.String() + ", until it has joined."
}

// expiration formats a time for the authenticator, which can't read years after 9999.
func expiration(until time.Time) string {
	if last := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC); until.After(last) {
		until = last
	}
	return until.UTC().Format(time.RFC3339)
}

// owned reports whether a secret is the token of that owner.
func owned(secret *corev1.Secret, of manager.TokenOwner) bool {
	return secret.Type == corev1.SecretTypeBootstrapToken && secret.Annotations[AnnotationOwner] == identity(of)
}

// sound reports whether a secret holds a token with that ID and a valid secret half. If kept is not
// empty, it must be that half.
func sound(secret *corev1.Secret, id, kept string) bool {
	half := string(secret.Data[keySecret])
	return string(secret.Data[keyID]) == id && fit(half) && (kept == "" || half == kept)
}

// fit reports whether a text has the form of a secret half.
func fit(half string) bool { return len(half) == secretLength && strings.Trim(half, alphabet) == "" }

// lasts reports whether a sound token needs no write: it does not expire before until, by the
// server's clock, and it has the usages and groups that it should have.
func (t *Tokens) lasts(secret *corev1.Secret, until time.Time) bool {
	end, err := time.Parse(time.RFC3339, string(secret.Data[keyExpiration]))
	return err == nil && !end.Before(t.clock.serverTime(until)) &&
		string(secret.Data[keyAuthentication]) == "true" && string(secret.Data[keySigning]) == "true" &&
		string(secret.Data[keyGroups]) == t.groups
}

// token returns the token in a secret, as a node presents it.
func token(secret *corev1.Secret) manager.Token {
	return manager.Token(fmt.Sprintf("%s.%s", secret.Data[keyID], secret.Data[keySecret]))
}
