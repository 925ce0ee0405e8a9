package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// late stores a machine as a create does that comes in when its set is gone.
func (w *world) late(name, kind string) *machine.Machine {
	m := &machine.Machine{Meta: object.Meta{
		Key: object.Key{Namespace: namespace, Name: name}, Owner: &object.Owner{Kind: kind, Name: "web-0", UID: "gone"},
	}}
	m.Spec.Class.Name = "small"
	m, err := w.machines.Create(ctx, m)
	require.NoError(w.t, err)
	return m
}

// TestMachineOfASetThatIsGone: it goes, with its VM, within a few minutes of its
// coming; others stay, whether they have their set, none, or another owner.
func TestMachineOfASetThatIsGone(t *testing.T) {
	w := guardedWorld(t)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	w.late("late", machineset.OwnerKind)
	foreign := w.late("foreign", "Other")
	free, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: "free"}}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	begun := w.at
	gone := func() bool {
		_, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: "late"})
		return err != nil
	}
	w.until(p, gone, unexpected(t))
	require.LessOrEqual(t, w.at.Sub(begun), 18*time.Minute)
	require.GreaterOrEqual(t, w.at.Sub(begun), 2*time.Minute)
	require.Equal(t, 1, w.heard("SetGone: machine late belongs to set web-0, which is gone"))
	end := w.at.Add(time.Hour)
	w.until(p, func() bool { return w.at.After(end) }, unexpected(t))
	for _, m := range []*machine.Machine{foreign, free} {
		_, err := w.machines.Get(ctx, m.Key)
		require.NoError(t, err)
	}
	require.Equal(t, 5, w.provider.Count())
}

// TestSetOfADeploymentThatIsGone: it goes with its machines.
func TestSetOfADeploymentThatIsGone(t *testing.T) {
	w := guardedWorld(t)
	s := &machineset.Set{Meta: object.Meta{
		Key: fleetKey, Owner: &object.Owner{Kind: deployment.OwnerKind, Name: "web", UID: "gone"},
	}}
	s.Spec.Replicas, s.Spec.Selector.Labels = 2, map[string]string{"app": "web"}
	s.Spec.Template = machineset.Template{Labels: s.Spec.Selector.Labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}}
	_, err := w.sets.Create(ctx, s)
	require.NoError(t, err)
	w.until(w.start(&testkit.Fuse{}, false), w.empty, unexpected(t))
	require.Equal(t, 1, w.heard("DeploymentGone: set web belongs to deployment web, which is gone"))
}

// TestOwnersThatCannotBeRead: whichever read fails, nothing goes in that pass.
func TestOwnersThatCannotBeRead(t *testing.T) {
	failures := 0
	for down := range 20 {
		w := guardedWorld(t)
		m := w.late("late", machineset.OwnerKind)
		p := w.start(&testkit.Fuse{}, false)
		require.NoError(t, p.lookAt(manager.KindReachability))
		require.NoError(t, p.lookAt(manager.KindOwnerless))
		w.at = w.at.Add(2 * time.Minute)
		begun := p.fuse.Calls
		p.fuse.Before = func(call int) { w.controlDown = call == begun+1+down }
		err := p.lookAt(manager.KindOwnerless)
		p.fuse.Before, w.controlDown = nil, false
		if err == nil {
			require.Empty(t, keysOf(w.machines), "call %d", down)
			continue
		}
		failures++
		require.ErrorIs(t, err, testkit.ErrOutage)
		m, err = w.machines.Get(ctx, m.Key)
		require.NoError(t, err)
		require.False(t, m.Deleted())
	}
	require.Equal(t, 6, failures, "machines, sets, deployments; the machine, its set; the delete")
}

// TestOwnerThatComesBetween: just before the delete both are read once more; so
// a machine that was taken over meanwhile stays, and one whose set the caches
// do not know goes nowhere.
func TestOwnerThatComesBetween(t *testing.T) {
	w := guardedWorld(t)
	m := w.late("late", machineset.OwnerKind)
	p := w.start(&testkit.Fuse{}, false)
	require.NoError(t, p.lookAt(manager.KindReachability))
	require.NoError(t, p.lookAt(manager.KindOwnerless))
	w.at = w.at.Add(2 * time.Minute)
	reads := w.effects["ReadAll"]
	p.fuse.Before = func(int) {
		if w.effects["ReadAll"] > reads {
			p.fuse.Before = nil
			moved := m.Clone()
			moved.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: "web-1", UID: "other"}
			_, err := w.machines.Update(ctx, moved)
			require.NoError(t, err)
		}
	}
	require.NoError(t, p.lookAt(manager.KindOwnerless))
	require.Len(t, keysOf(w.machines), 1)

	w = guardedWorld(t)
	p = w.start(&testkit.Fuse{}, true)
	w.loneSet(1)
	s, err := w.sets.Get(ctx, fleetKey)
	require.NoError(t, err)
	own := w.late("own", machineset.OwnerKind).Clone()
	own.Owner.Name, own.Owner.UID = s.Name, s.UID
	_, err = w.machines.Update(ctx, own)
	require.NoError(t, err)
	require.NoError(t, w.watch(p, manager.KindOwnerless, time.Hour), "its caches know neither")
	require.Len(t, keysOf(w.machines), 1)
}

// TestWhatWakesTheOwnerless: what is seen first and whose owner is not known.
func TestWhatWakesTheOwnerless(t *testing.T) {
	w := guardedWorld(t)
	p := w.start(&testkit.Fuse{}, false)
	wake := func(from manager.Kind, old, new any) (n int) {
		for _, wake := range p.Wakes() {
			if wake.From == from && wake.To == manager.KindOwnerless {
				n += len(wake.Keys(ctx, old, new))
			}
		}
		return n
	}
	late := w.late("late", machineset.OwnerKind)
	require.Equal(t, 1, wake(manager.KindMachine, nil, late))
	require.Zero(t, wake(manager.KindMachine, late, late)+wake(manager.KindMachine, late, nil)+wake(manager.KindMachine, nil, nil))
	require.Zero(t, wake(manager.KindMachine, nil, w.late("foreign", "Other")))
	w.loneSet(0)
	s, err := w.sets.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Zero(t, wake(manager.KindSet, nil, s))
	own := late.Clone()
	own.Owner.Name = s.Name
	require.Equal(t, 1, wake(manager.KindMachine, nil, own), "another set of that name")
	own.Owner.UID = s.UID
	require.Zero(t, wake(manager.KindMachine, nil, own))
	s = s.Clone()
	s.Owner = &object.Owner{Kind: deployment.OwnerKind, Name: "web", UID: "gone"}
	require.Equal(t, 1, wake(manager.KindSet, nil, s))
}
