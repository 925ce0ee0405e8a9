package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/manager"
)

// tries is how often a call is made, at most, if other programs write the same secret.
const tries = 5

// Options of Tokens. Config is needed.
type Options struct {
	// Config is access to the target cluster.
	Config *rest.Config
	// Groups are further groups of nodes that join with a token, besides system:bootstrappers. Rules
	// of the cluster use them to permit requests for certificates. Each begins with
	// "system:bootstrappers:". May be empty.
	Groups []string
	// Random is the source of the secret halves of tokens. Nil means crypto/rand. Several calls
	// read it at the same time.
	Random io.Reader
	// Now is the clock of the times that are passed to Ensure and Renew. Nil means time.Now. The
	// server judges tokens by its own clock. Ensure and Renew see the difference in its answers, and
	// correct for it, rounded to minutes.
	Now func() time.Time
}

// Tokens is a manager.Tokens. New makes it. It remembers nothing but the difference of the server's
// clock.
type Tokens struct {
	clock   *serverClock
	secrets typedcore.SecretInterface
	groups  string
	random  io.Reader
}

var _ manager.Tokens = (*Tokens)(nil)

// groupName matches the groups that the authenticator accepts.
var groupName = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)

// New returns Tokens. An error says which option is wrong. New makes no call.
func New(o Options) (*Tokens, error) {
	if o.Config == nil {
		return nil, errors.New("no Config")
	}
	for _, group := range o.Groups {
		if !groupName.MatchString(group) {
			return nil, fmt.Errorf("group %q: no server would accept it: it must match %s", group, groupName)
		}
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	clock := &serverClock{now: o.Now}
	config := rest.CopyConfig(o.Config)
	config.Wrap(clock.observe)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Tokens{
		clock:   clock,
		secrets: client.CoreV1().Secrets(metav1.NamespaceSystem),
		groups:  strings.Join(o.Groups, ","), random: o.Random,
	}, nil
}

// Ensure implements manager.Tokens. It replaces a damaged token. It also keeps the secret half of a
// pool's token in another secret, because the cluster removes expired tokens.
func (t *Tokens) Ensure(ctx context.Context, of manager.TokenOwner, until time.Time) (manager.Token, error) {
	return t.retry(of, func() (manager.Token, error) {
		poolHalf, err := t.ensureHalf(ctx, of)
		if err != nil {
			return "", err
		}
		secret, err := t.find(ctx, of)
		switch {
		case apierrors.IsNotFound(err):
			return t.create(ctx, of, until, poolHalf)
		case err != nil:
			return "", err
		case !owned(secret, of):
			return "", ErrTaken
		case secret.DeletionTimestamp != nil:
			return "", errDeleting
		}
		if !sound(secret, ID(of), poolHalf) {
			secret = secret.DeepCopy()
			secret.Data = nil
			half, err := t.half(poolHalf)
			if err != nil {
				return "", err
			}
			t.fill(secret, of, until)
			secret.Data[keySecret] = []byte(half)
			return t.update(ctx, secret)
		}
		return t.prolong(ctx, secret, of, until)
	})
}

// Renew implements manager.Tokens. It creates no token, except that it creates a pool's token again
// from the kept half. An empty token means that there is none that can be used.
func (t *Tokens) Renew(ctx context.Context, of manager.TokenOwner, until time.Time) (manager.Token, error) {
	return t.retry(of, func() (manager.Token, error) {
		poolHalf, err := t.readHalf(ctx, of)
		switch {
		case err != nil:
			return "", err
		case poolHalf != "" && until.IsZero():
			return manager.Token(ID(of) + "." + poolHalf), nil
		case of.Pool && poolHalf == "":
			return "", nil
		}
		secret, err := t.find(ctx, of)
		switch {
		case apierrors.IsNotFound(err) && poolHalf != "":
			return t.create(ctx, of, until, poolHalf)
		case apierrors.IsNotFound(err):
			return "", nil
		case err != nil:
			return "", err
		case !owned(secret, of) || !sound(secret, ID(of), poolHalf) || secret.DeletionTimestamp != nil:
			return "", nil
		case until.IsZero():
			return token(secret), nil
		}
		return t.prolong(ctx, secret, of, until)
	})
}

// Delete implements manager.Tokens.
func (t *Tokens) Delete(ctx context.Context, of manager.TokenOwner) error {
	_, err := t.retry(of, func() (manager.Token, error) {
		secret, err := t.find(ctx, of)
		switch {
		case apierrors.IsNotFound(err) || err == nil && !owned(secret, of):
		case err != nil:
			return "", err
		default:
			if err := t.remove(ctx, secret); err != nil {
				return "", err
			}
		}
		return "", t.deleteHalf(ctx, of)
	})
	return err
}

// remove deletes a secret, unless another one has its name now.
func (t *Tokens) remove(ctx context.Context, secret *corev1.Secret) error {
	err := t.secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(secret.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return about("delete", err)
}

// find reads the secret of an owner's token.
func (t *Tokens) find(ctx context.Context, of manager.TokenOwner) (*corev1.Secret, error) {
	secret, err := t.secrets.Get(ctx, blank(of).Name, metav1.GetOptions{})
	return secret, about("get", err)
}

// half returns the secret half of a new token: the kept one if there is one, else a random one.
func (t *Tokens) half(kept string) (string, error) {
	if kept != "" {
		return kept, nil
	}
	return random(t.random)
}

func (t *Tokens) create(ctx context.Context, of manager.TokenOwner, until time.Time, kept string) (manager.Token, error) {
	half, err := t.half(kept)
	if err != nil {
		return "", err
	}
	secret := blank(of)
	t.fill(secret, of, until)
	secret.Data[keySecret] = []byte(half)
	made, err := t.secrets.Create(ctx, secret, metav1.CreateOptions{})
	if err != nil {
		return "", redactError(about("create", err), half)
	}
	return token(made), nil
}

func (t *Tokens) update(ctx context.Context, secret *corev1.Secret) (manager.Token, error) {
	half := string(secret.Data[keySecret])
	written, err := t.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	if err != nil {
		return "", redactError(about("update", err), half)
	}
	return token(written), nil
}

// prolong updates a token if it expires before until. The update fails if the secret has changed
// since it was read.
func (t *Tokens) prolong(ctx context.Context, secret *corev1.Secret, of manager.TokenOwner, until time.Time) (manager.Token, error) {
	if t.lasts(secret, until) {
		return token(secret), nil
	}
	secret = secret.DeepCopy()
	t.fill(secret, of, until)
	return t.update(ctx, secret)
}

// retry repeats a call while it conflicts with other writers, and returns its error with a code.
func (t *Tokens) retry(of manager.TokenOwner, call func() (manager.Token, error)) (manager.Token, error) {
	var out manager.Token
	var err error
	for range tries {
		out, err = call()
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !vanished(err) {
			break
		}
	}
	if err == nil {
		return out, nil
	}
	return "", &failure{metav1.NamespaceSystem + "/" + blank(of).Name, err}
}
