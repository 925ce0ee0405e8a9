package apistore_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// noting is a codec that stores one field of the status, Node, in an annotation.
type noting struct {
	apistore.Codec[*storetest.Object, *thing]
}

const noted = "storetest.example/node"

// Read implements Codec.
func (n noting) Read(raw *thing) (*storetest.Object, []*object.FieldError) {
	o, problems := n.Codec.Read(raw)
	o.Status.Node = raw.Annotations[noted]
	o.Annotations = maps.Clone(o.Annotations)
	delete(o.Annotations, noted)
	return o, problems
}

// UpdateNotes implements Codec.
func (n noting) UpdateNotes(stored *thing, o *storetest.Object) ([]byte, error) {
	if stored.Annotations[noted] == o.Status.Node {
		return nil, nil
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": o.Version, "annotations": map[string]any{noted: o.Status.Node},
	}})
}

// UpdateStatus implements Codec.
func (n noting) UpdateStatus(stored *thing, o *storetest.Object) ([]byte, error) {
	o = o.Clone()
	o.Status.Node = ""
	return n.Codec.UpdateStatus(stored, o)
}

// between calls do before each write of a status, which fails with the error of do.
type between struct {
	next http.RoundTripper
	do   func() error
}

// RoundTrip implements http.RoundTripper.
func (b *between) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") {
		if err := b.do(); err != nil {
			return nil, err
		}
	}
	return b.next.RoundTrip(r)
}

// TestStatusInAnnotations: the parts of a status that are in annotations are written before the rest,
// each only if it has changed and if nobody else has written. If the process ends between the two
// writes, reads show the first one.
func TestStatusInAnnotations(t *testing.T) {
	config, wire := wired(t)
	hook := &between{do: func() error { return nil }}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		hook.next = next
		return hook
	})
	c := newCollection(t, config, func(o *apistore.Options[*storetest.Object, *thing]) { o.Codec = noting{o.Codec} })
	made, err := c.Create(t.Context(), &storetest.Object{Meta: object.Meta{Key: object.Key{Namespace: storetest.Namespaces[0], Name: "a"}}})
	require.NoError(t, err)
	write := func(o *storetest.Object, node string, ready int64) (*storetest.Object, []string, error) {
		o = o.Clone()
		o.Status.Node, o.Status.Ready = node, ready
		wire.taken()
		after, err := c.UpdateStatus(t.Context(), o)
		var sent []string
		for _, request := range wire.taken() {
			what, _, _ := strings.Cut(request, " {")
			sent = append(sent, what)
		}
		if err == nil {
			require.Equal(t, o.Status, after.Status)
			cached, err := c.Get(t.Context(), o.Key)
			require.NoError(t, err)
			require.Equal(t, after, cached)
		}
		return after, sent, err
	}
	_, err = c.Get(t.Context(), made.Key) // waits until the cache is filled
	require.NoError(t, err)
	both := []string{"PATCH", "PATCH status"}
	o, sent, err := write(made, "n", 1)
	require.NoError(t, err)
	require.Equal(t, both, sent)
	o, sent, err = write(o, "m", 1)
	require.NoError(t, err)
	require.Equal(t, both[:1], sent)
	o, sent, err = write(o, "m", 2)
	require.NoError(t, err)
	require.Equal(t, both[1:], sent)
	_, _, err = write(made, "k", 3)
	require.ErrorIs(t, err, store.ErrConflict, "an update of an older version")

	live := func() *storetest.Object {
		t.Helper()
		o, err := c.Live().Get(t.Context(), made.Key)
		require.NoError(t, err)
		return o
	}
	require.Equal(t, o, live(), "a refused update has changed something")
	hook.do = func() error { return errors.New("the process ends") }
	_, _, err = write(o, "k", 3)
	require.Error(t, err)
	half := live()
	require.Equal(t, "k", half.Status.Node)
	require.EqualValues(t, 2, half.Status.Ready)

	hook.do = func() error {
		_, err := raw(t).Namespace(made.Namespace).Patch(t.Context(), made.Name, types.MergePatchType,
			[]byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{})
		return err
	}
	_, _, err = write(half, "l", 3)
	require.ErrorIs(t, err, store.ErrConflict, "another program has written between the two requests")
	half = live()
	require.Equal(t, "l", half.Status.Node)
	require.EqualValues(t, 2, half.Status.Ready)
	require.EqualValues(t, 9, half.Spec.Replicas)
	hook.do = func() error { return nil }
	_, sent, err = write(half, "l", 3)
	require.NoError(t, err)
	require.Equal(t, both[1:], sent)
}
