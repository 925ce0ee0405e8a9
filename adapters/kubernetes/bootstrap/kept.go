package bootstrap

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/manager"
)

// keptPrefix begins the names of the secrets that keep the secret halves of pools' tokens. These
// secrets do not have the type of tokens, so the cluster's token cleaner does not remove them.
const keptPrefix = "millwright-pool-token-"

// blankHalfSecret returns the secret that keeps a pool's secret half, without data.
func blankHalfSecret(of manager.TokenOwner) *corev1.Secret {
	secret := blank(of)
	secret.Name, secret.Type = keptPrefix+ID(of), corev1.SecretTypeOpaque
	return secret
}

// readHalf returns the secret half that is kept for a pool. It returns "" if none is kept, and for
// machines.
func (t *Tokens) readHalf(ctx context.Context, of manager.TokenOwner) (string, error) {
	if !of.Pool {
		return "", nil
	}
	secret, err := t.secrets.Get(ctx, blankHalfSecret(of).Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", about("get", err)
	}
	return halfIn(secret, of)
}

// halfIn returns the secret half in a secret that was read.
func halfIn(secret *corev1.Secret, of manager.TokenOwner) (string, error) {
	half := string(secret.Data[keySecret])
	switch {
	case secret.Annotations[AnnotationOwner] != identity(of):
		return "", ErrTaken
	case secret.DeletionTimestamp != nil:
		return "", errDeleting
	case !fit(half):
		return "", errDamaged
	}
	return half, nil
}

// ensureHalf is readHalf, but creates a secret half for a pool that has none.
func (t *Tokens) ensureHalf(ctx context.Context, of manager.TokenOwner) (string, error) {
	half, err := t.readHalf(ctx, of)
	if err != nil || half != "" || !of.Pool {
		return half, err
	}
	if half, err = random(t.random); err != nil {
		return "", err
	}
	secret := blankHalfSecret(of)
	secret.Data = map[string][]byte{keyDescription: []byte(description(of)), keySecret: []byte(half)}
	if _, err = t.secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return "", redactError(about("create", err), half)
	}
	return half, nil
}

// deleteHalf deletes the secret half that is kept for a pool.
func (t *Tokens) deleteHalf(ctx context.Context, of manager.TokenOwner) error {
	if !of.Pool {
		return nil
	}
	secret, err := t.secrets.Get(ctx, blankHalfSecret(of).Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return about("get", err)
	case secret.Annotations[AnnotationOwner] != identity(of):
		return nil
	}
	return t.remove(ctx, secret)
}
