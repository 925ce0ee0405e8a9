package object

import (
	"maps"
	"slices"
	"time"
)

// Key names an object of one kind. Namespace may be empty.
type Key struct {
	Namespace string
	Name      string
}

// String returns "namespace/name", or the name alone outside any namespace.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Owner is the one controlling owner of an object. The store handles other owners, which do not
// control it.
type Owner struct {
	Kind string // "Set", "Deployment"; an adapter translates it
	Name string
	UID  string // decides: a new object with an old name is another owner
}

// Meta is what every stored object carries besides its spec and status. Key and Labels are the
// caller's. UID, Version, Generation, CreatedAt and DeletedAt belong to the store, which ignores
// what a caller writes there.
type Meta struct {
	Key
	UID string // unique over all time, never empty in a stored object

	// Version changes with each write and is opaque; an update must carry
	// the version it was read with.
	Version string
	// Generation counts changes of the spec, from 1.
	Generation int64

	CreatedAt time.Time // whole seconds
	DeletedAt time.Time // when deletion was requested, or zero

	Labels      map[string]string
	Annotations map[string]string
	Finalizers  []string // the object exists until this is empty
	Owner       *Owner   // nil if nothing controls it
}

// ObjectMeta gives access to the metadata of a kind that embeds Meta.
func (m *Meta) ObjectMeta() *Meta { return m }

// Deleted reports whether deletion was requested.
func (m *Meta) Deleted() bool { return !m.DeletedAt.IsZero() }

// HasFinalizer reports whether name is among the finalizers.
func (m *Meta) HasFinalizer(name string) bool {
	return slices.Contains(m.Finalizers, name)
}

// AddFinalizer appends name unless it is there already. It replaces the slice and leaves the old
// one unchanged.
func (m *Meta) AddFinalizer(name string) {
	if !m.HasFinalizer(name) {
		m.Finalizers = append(slices.Clip(m.Finalizers), name)
	}
}

// RemoveFinalizer removes name if it is there. It replaces the slice and leaves the old one
// unchanged.
func (m *Meta) RemoveFinalizer(name string) {
	if m.HasFinalizer(name) {
		m.Finalizers = slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == name })
	}
}

// OwnedBy reports whether the object with this UID controls m. An empty UID owns nothing.
func (m *Meta) OwnedBy(uid string) bool {
	return uid != "" && m.Owner != nil && m.Owner.UID == uid
}

// CloneMeta returns a copy that shares nothing with m.
func (m *Meta) CloneMeta() Meta {
	c := *m
	c.Labels = maps.Clone(m.Labels)
	c.Annotations = maps.Clone(m.Annotations)
	c.Finalizers = slices.Clone(m.Finalizers)
	if m.Owner != nil {
		owner := *m.Owner
		c.Owner = &owner
	}
	return c
}

// Object is what a store can keep. T is a pointer to the kind's struct. Readers share stored
// objects and must not change them: Clone first.
type Object[T any] interface {
	comparable
	ObjectMeta() *Meta
	// Clone returns a copy that shares nothing changeable with its origin.
	Clone() T
	// CopyStatus makes the receiver's status a copy of from's. It replaces the old status and
	// changes nothing that the old status pointed to, because a store may share that with others.
	CopyStatus(from T)
	// SpecEqual reports whether both have the same spec. It decides when the store raises
	// Generation.
	SpecEqual(T) bool
}
