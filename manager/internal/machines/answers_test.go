package machines

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestKeptAnswers: the next pass uses the answers of a pass that met a conflict, once and for a while, if nothing
// they depend on was written. It asks again for a VM that another listing misses: a suspicion needs two answers.
func TestKeptAnswers(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		later      func(o *machine.Observation)
		after      time.Duration
		status, vm bool // the answers to GetMachineStatus and CreateMachine are used
	}{
		"nothing":              {status: true, vm: true},
		"a moment before":      {after: validFor - 1, status: true, vm: true},
		"long ago":             {after: validFor},
		"VM missing":           {later: func(o *machine.Observation) { o.Missing = &machine.MissingVM{} }, vm: true},
		"VM unhealthy":         {later: func(o *machine.Observation) { o.VMUnhealthy = true }, vm: true},
		"deleted":              {later: func(o *machine.Observation) { o.Machine.DeletedAt = now }},
		"another of the name":  {later: func(o *machine.Observation) { o.Machine.UID = "2" }},
		"another step":         {later: func(o *machine.Observation) { o.Machine.Status.LastOperation.Code = codes.Internal }},
		"labels":               {later: func(o *machine.Observation) { o.Machine.Labels = map[string]string{"a": "b"} }, status: true, vm: true},
		"class changed since":  {later: func(o *machine.Observation) { o.Class.Generation = 2 }, status: true},
		"secret changed since": {later: func(o *machine.Observation) { o.Secret = "v2" }, status: true},
	} {
		clock := now
		e := engine.New(engine.Options{Now: func() time.Time { return clock }})
		r := newReconciler(Config{})
		observe := func() machine.Observation {
			m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "a"}, UID: "1"}}
			return machine.Observation{Machine: m, Class: &machine.Class{Meta: object.Meta{UID: "c", Generation: 1}}}
		}
		key := observe().Machine.Key
		first := &pass{Pass: &engine.Pass{Engine: e, Key: key}, reconciler: r, o: observe()}
		first.o.VM, first.o.Created = &machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}, &machine.VM{Outcome: machine.Outcome{Code: codes.Unavailable}}
		require.ErrorIs(t, first.keepAnswers(store.ErrConflict), store.ErrConflict)

		clock = clock.Add(c.after)
		next := &pass{Pass: &engine.Pass{Engine: e, Key: key}, reconciler: r, o: observe()}
		if c.later != nil {
			c.later(&next.o)
		}
		next.takeAnswers()
		require.Equal(t, c.status, next.o.VM != nil, name)
		require.Equal(t, c.vm, next.o.Created != nil, name)

		again := &pass{Pass: &engine.Pass{Engine: e, Key: key}, reconciler: r, o: observe()}
		again.takeAnswers()
		require.Nil(t, again.o.VM, "%s: once", name)
	}
}
