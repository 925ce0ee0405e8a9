package bootstrap_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/millwright-go/millwright/adapters/kubernetes/bootstrap"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

// server is the API server of all tests here. It accepts bootstrap tokens, and has a user "nobody"
// without permissions.
var server *lab.Lab

func TestMain(m *testing.M) {
	os.Exit(lab.Main(m, func(l *lab.Lab) error { server = l; return nil }, "--user=nobody", "--", "--enable-bootstrap-token-auth=true"))
}

// patience limits any wait, also on a slow and busy machine.
const patience = 5 * time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.True(t, lab.Await(patience, holds), "waited in vain for %s", what)
}

const group = "system:bootstrappers:fleet:blue"

// world is one test's owner of tokens, a machine, and the Tokens to test.
type world struct {
	*testing.T
	owner  manager.TokenOwner
	client kubernetes.Interface
	tokens *bootstrap.Tokens
}

var worlds atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	client, err := kubernetes.NewForConfig(server.Config)
	require.NoError(t, err)
	tokens, err := bootstrap.New(bootstrap.Options{Config: server.Config, Groups: []string{group}})
	require.NoError(t, err)
	name := fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), worlds.Add(1))
	return &world{T: t, client: client, tokens: tokens, owner: manager.TokenOwner{
		Key: object.Key{Namespace: "fleet", Name: name}, UID: "uid-" + name,
	}}
}

// ensure returns the machine's token, from Ensure.
func (w *world) ensure(until time.Time) string {
	w.Helper()
	token, err := w.tokens.Ensure(w.Context(), w.owner, until)
	require.NoError(w, err)
	return string(token)
}

// name returns the name of the machine's secret.
func (w *world) name() string { return "bootstrap-token-" + bootstrap.ID(w.owner) }

// secret reads the machine's secret from the server. It returns nil if there is none.
func (w *world) secret() *corev1.Secret {
	w.Helper()
	s, err := w.client.CoreV1().Secrets("kube-system").Get(context.Background(), w.name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w, err)
	return s
}

// change updates the machine's secret as another program would.
func (w *world) change(how func(*corev1.Secret)) {
	w.Helper()
	s := w.secret()
	how(s)
	_, err := w.client.CoreV1().Secrets("kube-system").Update(w.Context(), s, metav1.UpdateOptions{})
	require.NoError(w, err)
}

// soon returns the time in some minutes, in whole seconds.
func soon(minutes int) time.Time {
	return time.Now().Truncate(time.Second).Add(time.Duration(minutes) * time.Minute)
}

// zeros is a source of randomness that returns only zeros.
type zeros struct{}

func (zeros) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

func itoa(n int) string { return strconv.Itoa(n) }
