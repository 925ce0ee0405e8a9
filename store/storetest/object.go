package storetest

import (
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// These are the names in Indexes.
const (
	ByOwner store.Index = "owner" // UID of the owner; none without one
	ByZone  store.Index = "zone"  // each of Spec.Zones, including repetitions
	ByNode  store.Index = "node"  // Status.Node; none while that is empty
)

// Namespaces are the namespaces in which the suite creates objects. A store with fixed namespaces
// must have them.
var Namespaces = []string{"fleet-a", "fleet-b"}

// Object is the kind that the suite stores. It stands for the kinds of a fleet: it has numbers,
// text, times and lists in spec and status, and a value for an index in each part.
type Object struct {
	object.Meta
	Spec   Spec
	Status Status
}

// Spec is what a writer asks for.
type Spec struct {
	Replicas  int64
	Class     string
	Zones     []string // may repeat a zone
	NotBefore time.Time
}

// Status is what was observed.
type Status struct {
	Ready      int64
	Node       string
	Checked    time.Time
	Conditions []object.Condition
}

// Clone implements object.Object.
func (o *Object) Clone() *Object {
	c := &Object{Meta: o.CloneMeta(), Spec: o.Spec}
	c.Spec.Zones = slices.Clone(o.Spec.Zones)
	c.CopyStatus(o)
	return c
}

// CopyStatus implements object.Object.
func (o *Object) CopyStatus(from *Object) {
	o.Status = from.Status
	o.Status.Conditions = slices.Clone(from.Status.Conditions)
}

// SpecEqual implements object.Object.
func (o *Object) SpecEqual(p *Object) bool {
	a, b := &o.Spec, &p.Spec
	return a.Replicas == b.Replicas && a.Class == b.Class &&
		slices.Equal(a.Zones, b.Zones) && a.NotBefore.Equal(b.NotBefore)
}

// Indexes returns the indexes that the store under test must be built with.
func Indexes() map[store.Index]func(*Object) []string {
	return map[store.Index]func(*Object) []string{
		ByOwner: func(o *Object) []string {
			if o.Owner == nil {
				return nil
			}
			return []string{o.Owner.UID}
		},
		ByZone: func(o *Object) []string { return o.Spec.Zones },
		ByNode: func(o *Object) []string {
			if o.Status.Node == "" {
				return nil
			}
			return []string{o.Status.Node}
		},
	}
}

// canonical returns a copy for comparison by value. It has one fixed form for what the rules leave
// open (nil or empty, the location of a time).
func canonical(o *Object) *Object {
	if o == nil {
		return nil
	}
	c := o.Clone()
	c.CreatedAt, c.DeletedAt = c.CreatedAt.UTC(), c.DeletedAt.UTC()
	c.Labels, c.Annotations = nonNil(c.Labels), nonNil(c.Annotations)
	c.Finalizers = append([]string{}, c.Finalizers...)
	c.Spec.Zones = append([]string{}, c.Spec.Zones...)
	c.Spec.NotBefore, c.Status.Checked = c.Spec.NotBefore.UTC(), c.Status.Checked.UTC()
	c.Status.Conditions = append([]object.Condition{}, c.Status.Conditions...)
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].Since = c.Status.Conditions[i].Since.UTC()
	}
	return c
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}
