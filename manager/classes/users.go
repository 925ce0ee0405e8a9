package classes

import (
	"context"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Use is how an object uses a class. The zero value: not at all.
type Use struct {
	Class object.Key
	Ref   machine.ClassRef
	// Counts says that the class must stay.
	Counts bool
}

// UseOfMachine returns how a machine uses its class: it needs it until it is gone.
func UseOfMachine(m *machine.Machine) Use { return Use{index.ClassKey(m), m.Spec.Class, true} }

// UseOfSet returns how a set uses its class. A deployment's set that was scaled to zero is history. It
// must not hold a class for as long as history is kept.
func UseOfSet(s *machineset.Set) Use {
	ref := s.Spec.Template.Spec.Class
	counts := !s.Deleted() && (s.Owner == nil || s.Spec.Replicas > 0)
	return Use{object.Key{Namespace: s.Namespace, Name: ref.Name}, ref, counts}
}

// UseOfDeployment returns how a deployment uses its class. One that is being deleted creates nothing any
// more.
func UseOfDeployment(d *deployment.Deployment) Use {
	ref := d.Spec.Template.Spec.Class
	return Use{object.Key{Namespace: d.Namespace, Name: ref.Name}, ref, !d.Deleted()}
}

// count counts the objects that a query picks and that matter. A collection that is not there has none.
func count[T object.Object[T]](ctx context.Context, c *engine.Objects[T], live bool, q store.Query, matters func(T) bool) (int, error) {
	if c == nil {
		return 0, nil
	}
	reader := store.Reader[T](c)
	if live {
		reader = c.Live()
	}
	list, err := reader.List(ctx, q)
	n := 0
	for _, o := range list {
		if matters(o) {
			n++
		}
	}
	return n, err
}
