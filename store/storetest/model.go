package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// checkModel sends random sequences of calls to the store and to a model, which is a map and the
// rules in their plainest form. It requires the same answers and the same state after each call.
func checkModel(r *trial) {
	runs := 0
	rapid.Check(r.T, func(t *rapid.T) {
		runs++
		m := &model{
			trial: r, prefix: fmt.Sprintf("run%d-", runs),
			objects: map[object.Key]*Object{},
			uids:    map[string]bool{}, versions: map[string]bool{},
		}
		m.view = r.watchFor(t)
		defer m.view.end()
		defer m.clear()
		t.Repeat(map[string]func(*rapid.T){
			"create":       m.create,
			"update":       m.update,
			"updateStatus": m.updateStatus,
			"delete":       m.delete,
			"watch":        m.watch,
			"":             m.compare,
		})
		m.watch(t)
	})
}

// model is what a store should hold. All runs share one store, because a store may be costly to open.
// The names of a run begin with its prefix.
type model struct {
	trial   *trial
	prefix  string
	objects map[object.Key]*Object
	held    []*Object // all that calls have returned: updates are based on these

	uids, versions map[string]bool // all that the store has ever assigned
	view           *view
}

var (
	drawName       = rapid.SampledFrom([]string{"a", "b", "c"})
	drawNamespace  = rapid.SampledFrom([]string{Namespaces[0], Namespaces[0], Namespaces[1]})
	drawZones      = rapid.SliceOfN(rapid.SampledFrom([]string{"north", "south", "east"}), 0, 3)
	drawFinalizers = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{holdOne, holdTwo}), 0, 2, rapid.ID[string])
	drawOwner      = rapid.SampledFrom([]string{"", "owner-1", "owner-2"})
	drawNode       = rapid.SampledFrom([]string{"", "node-1", "node-2"})
	drawNumber     = rapid.Int64Range(0, 3)
	drawText       = rapid.SampledFrom([]string{"", "small", "large"})
	drawWrong      = rapid.SampledFrom([]string{"nothing", "nothing", "nothing", "uid", "no uid", "no version", "no name"})
)

func (m *model) key(t *rapid.T) object.Key {
	return object.Key{Namespace: drawNamespace.Draw(t, "namespace"), Name: m.prefix + drawName.Draw(t, "name")}
}

// scramble draws fields that a caller may write, and two that the store must ignore.
func scramble(t *rapid.T, o *Object) {
	o.Labels = map[string]string{"app": drawText.Draw(t, "label")}
	o.Annotations = map[string]string{"note": drawText.Draw(t, "annotation")}
	o.Finalizers = drawFinalizers.Draw(t, "finalizers")
	o.Owner = nil
	if uid := drawOwner.Draw(t, "owner"); uid != "" {
		o.Owner = &object.Owner{Kind: "Set", Name: uid, UID: uid}
	}
	if rapid.Bool().Draw(t, "another spec") {
		o.Spec = Spec{
			Replicas:  drawNumber.Draw(t, "replicas"),
			Class:     drawText.Draw(t, "class"),
			Zones:     drawZones.Draw(t, "zones"),
			NotBefore: time.Unix(drawNumber.Draw(t, "not before"), 0),
		}
	}
	o.Status = Status{Ready: drawNumber.Draw(t, "ready"), Node: drawNode.Draw(t, "node")}
	for i := range drawNumber.Draw(t, "conditions") {
		o.Status.Conditions = append(o.Status.Conditions, object.Condition{
			Type: fmt.Sprint("C", i), Status: object.True, Since: time.Unix(i, 0),
		})
	}
	o.Generation += drawNumber.Draw(t, "generation")
	if rapid.Bool().Draw(t, "claim deletion") {
		o.DeletedAt = time.Unix(1, 0)
	}
}

func (m *model) create(t *rapid.T) {
	o := &Object{Meta: object.Meta{Key: m.key(t)}}
	scramble(t, o)
	m.trial.clock.advance(700 * time.Millisecond)
	got, err := m.trial.store.Create(m.trial.ctx, o)
	if m.objects[o.Key] != nil {
		require.ErrorIs(t, err, store.ErrAlreadyExists)
		return
	}
	require.NoError(t, err)
	want := o.Clone()
	want.Status = Status{}
	want.Generation, want.DeletedAt = 1, time.Time{}
	want.CreatedAt = m.stamp(got.CreatedAt)
	require.NotEmpty(t, got.UID)
	require.False(t, m.uids[got.UID], "UID %q comes twice", got.UID)
	m.uids[got.UID] = true
	want.UID = got.UID
	m.written(t, want, got)
}

// stamp returns the time that the store should have set. It is got if the store has a clock of its
// own.
func (m *model) stamp(got time.Time) time.Time {
	if m.trial.suite.OwnClock {
		return got
	}
	return m.trial.clock.seconds()
}

// written requires that got is want, except for a version that is new, and records it.
func (m *model) written(t *rapid.T, want, got *Object) {
	require.NotEmpty(t, got.Version)
	require.False(t, m.versions[got.Version], "version %q comes twice", got.Version)
	m.versions[got.Version] = true
	want.Version = got.Version
	require.Equal(t, canonical(want), canonical(got))
	m.objects[want.Key] = want
	m.held = append(m.held, got)
}

// request draws an update: an object that was returned before, scrambled, and sometimes spoiled. It
// also returns the error that the update should get.
func (m *model) request(t *rapid.T) (*Object, error) {
	if len(m.held) == 0 {
		t.Skip("nothing to update")
	}
	// Counted from the last, because the last ones can succeed.
	back := rapid.IntRange(0, min(5, len(m.held)-1)).Draw(t, "held, from the last")
	o := m.held[len(m.held)-1-back].Clone()
	scramble(t, o)
	switch drawWrong.Draw(t, "wrong") {
	case "uid":
		o.UID = "stranger"
	case "no uid":
		o.UID = ""
	case "no version":
		o.Version = ""
		return o, store.ErrInvalid
	case "no name":
		o.Name = ""
		return o, store.ErrInvalid
	}
	stored := m.objects[o.Key]
	switch {
	case stored == nil:
		return o, store.ErrNotFound
	case o.UID != "" && o.UID != stored.UID, o.Version != stored.Version:
		return o, store.ErrConflict
	}
	return o, nil
}

func (m *model) update(t *rapid.T) {
	o, refusal := m.request(t)
	stored := m.objects[o.Key]
	if refusal == nil && stored.Deleted() {
		for _, f := range o.Finalizers {
			if !stored.HasFinalizer(f) {
				refusal = store.ErrInvalid
			}
		}
	}
	got, err := m.trial.store.Update(m.trial.ctx, o)
	if refusal != nil {
		require.ErrorIs(t, err, refusal)
		return
	}
	require.NoError(t, err)
	want := o.Clone()
	want.Status = stored.Status
	want.UID, want.Generation = stored.UID, stored.Generation
	want.CreatedAt, want.DeletedAt = stored.CreatedAt, stored.DeletedAt
	if !want.SpecEqual(stored) {
		want.Generation++
	}
	switch {
	case want.Deleted() && len(want.Finalizers) == 0:
		want.Version = got.Version
		require.Equal(t, canonical(want), canonical(got))
		delete(m.objects, o.Key)
	case !m.unchanged(want, stored, got):
		m.written(t, want, got)
	}
}

// unchanged reports whether an update that changes nothing has left the version as it was, which a
// store may do.
func (m *model) unchanged(want, stored, got *Object) bool {
	return same(want, stored) && same(stored, got)
}

func (m *model) updateStatus(t *rapid.T) {
	o, refusal := m.request(t)
	got, err := m.trial.store.UpdateStatus(m.trial.ctx, o)
	if refusal != nil {
		require.ErrorIs(t, err, refusal)
		return
	}
	require.NoError(t, err)
	stored := m.objects[o.Key]
	want := stored.Clone()
	want.CopyStatus(o)
	if !m.unchanged(want, stored, got) {
		m.written(t, want, got)
	}
}

func (m *model) delete(t *rapid.T) {
	k := m.key(t)
	stored := m.objects[k]
	uid := ""
	if stored != nil && rapid.Bool().Draw(t, "by UID") {
		uid = stored.UID
	}
	if rapid.IntRange(0, 4).Draw(t, "wrong UID") == 4 {
		uid = "stranger"
	}
	m.trial.clock.advance(700 * time.Millisecond)
	err := m.trial.store.Delete(m.trial.ctx, k, uid)
	switch {
	case stored == nil:
		require.ErrorIs(t, err, store.ErrNotFound)
		return
	case uid != "" && uid != stored.UID:
		require.ErrorIs(t, err, store.ErrConflict)
		return
	}
	require.NoError(t, err)
	if len(stored.Finalizers) == 0 {
		delete(m.objects, k)
		return
	}
	if stored.Deleted() {
		return // compare sees that nothing has changed
	}
	got, err := m.trial.store.Live().Get(m.trial.ctx, k)
	require.NoError(t, err)
	want := stored.Clone()
	want.Generation++
	want.DeletedAt = m.stamp(got.DeletedAt)
	m.written(t, want, got)
}

// watch brings the view up to date.
func (m *model) watch(*rapid.T) {
	want := m.all()
	m.view.until("what the model holds", func() bool {
		mine := ledger{}
		for k, o := range m.view.objects {
			if strings.HasPrefix(k.Name, m.prefix) {
				mine[k] = o
			}
		}
		return mine.equals(want)
	})
}

func (m *model) all() []*Object {
	objects := make([]*Object, 0, len(m.objects))
	for _, o := range m.objects {
		objects = append(objects, o)
	}
	return objects
}

// compare compares all live reads with the model.
func (m *model) compare(t *rapid.T) {
	m.lists(t, store.Query{}, func(*Object) bool { return true })
	for _, uid := range []string{"owner-1", "owner-2"} {
		m.lists(t, store.Query{Index: ByOwner, Value: uid}, func(o *Object) bool {
			return o.Owner != nil && o.Owner.UID == uid
		})
	}
	for _, zone := range []string{"north", "south", "east"} {
		m.lists(t, store.Query{Index: ByZone, Value: zone}, func(o *Object) bool {
			return slices.Contains(o.Spec.Zones, zone)
		})
	}
	for _, node := range []string{"node-1", "node-2"} {
		m.lists(t, store.Query{Index: ByNode, Value: node}, func(o *Object) bool { return o.Status.Node == node })
	}
	for k, want := range m.objects {
		got, err := m.trial.store.Live().Get(m.trial.ctx, k)
		require.NoError(t, err)
		require.Equal(t, canonical(want), canonical(got))
	}
}

func (m *model) lists(t *rapid.T, q store.Query, picks func(*Object) bool) {
	listed, err := m.trial.store.Live().List(m.trial.ctx, q)
	require.NoError(t, err)
	got := ledger{}
	for _, o := range listed {
		if strings.HasPrefix(o.Name, m.prefix) {
			require.Nil(t, got[o.Key], "%v is listed twice", o.Key)
			got[o.Key] = o
		}
	}
	want := slices.DeleteFunc(m.all(), func(o *Object) bool { return !picks(o) })
	require.True(t, got.equals(want), "%+v lists %v, want %v", q, got, want)
}

// clear deletes all objects of this run.
func (m *model) clear() {
	for k, o := range m.objects {
		c := o.Clone()
		c.Finalizers = nil
		if _, err := m.trial.store.Update(m.trial.ctx, c); err != nil {
			continue // the run has failed already
		}
		_ = m.trial.store.Delete(m.trial.ctx, k, "")
	}
}
