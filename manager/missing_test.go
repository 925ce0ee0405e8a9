package manager_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// clusterless returns a fleet of n machines without a cluster, and the driver that answers for it from now on.
func clusterless(t tb, n int32) (*world, *badDriver, *process) {
	w := guardedWorld(t)
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Cluster = nil }
	l := &badDriver{Memory: w.provider}
	w.badDriver = l
	w.fleet()
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = n })
	return w, l, w.until(w.start(&testkit.Fuse{}, false), w.available(int(n)), neverDies(t))
}

// available returns whether n machines are available with a VM each, and no others exist.
func (w *world) available(n int) func() bool {
	return func() bool {
		d, err := w.deployments.Get(ctx, fleetKey)
		if err != nil || d.Status.ObservedGeneration != d.Generation || int(d.Status.Available) != n || !w.idle {
			return false
		}
		machines := keysOf(w.machines)
		for _, vm := range w.provider.VMs() {
			if m, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: vm.Name}); err != nil || m.Spec.ProviderID != vm.ID {
				return false
			}
		}
		return len(machines) == n && w.provider.Count() == n
	}
}

// TestP54DeadVMIsNoticed: without a cluster, a machine whose VM disappears is Failed within three minutes, and an
// event before that says that the VM is missing. No other machine is marked failed.
// Invariants: P54
func TestP54DeadVMIsNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "machines")
		w, _, p := clusterless(t, int32(n))
		p = w.until(p, w.lasts(time.Duration(rapid.IntRange(90, 4000).Draw(t, "seconds"))*time.Second), neverDies(t))
		vm := w.provider.VMs()[rapid.IntRange(0, n-1).Draw(t, "which")]
		w.provider.Remove(vm.ID)
		began := w.at
		p = w.until(p, func() bool { return w.countEvents("VMNotListed: machine "+namespace+"/"+vm.Name) > 0 }, neverDies(t))
		if lost := w.lost; lost > 0 {
			t.Fatalf("%d given up before it was reported\n%s", lost, w.dump())
		}
		p = w.until(p, func() bool { return w.lost > 0 }, neverDies(t))
		if took := w.at.Sub(began); took > 3*time.Minute {
			t.Fatalf("it took %v\n%s", took, w.dump())
		}
		w.until(p, w.available(n), neverDies(t))
		if len(w.made) != n+1 {
			t.Fatalf("%d machines were made\n%s", len(w.made), w.dump())
		}
	})
}

// TestP54UnhealthyVMIsReplaced: without a cluster, a machine whose VM is unhealthy is Unknown within two minutes.
// It is available again soon after its VM is well; otherwise it is Failed once the health timeout is over. An
// outage of the provider in between fails no machine, and no other machine is marked failed.
// Invariants: P54
func TestP54UnhealthyVMIsReplaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "machines")
		w, l, p := clusterless(t, int32(n))
		p = w.until(p, w.lasts(time.Duration(rapid.IntRange(1, 4000).Draw(t, "seconds"))*time.Second), neverDies(t))
		vm := w.provider.VMs()[rapid.IntRange(0, n-1).Draw(t, "which")]
		w.provider.SetUnhealthy(vm.ID, "stopped")
		phase := func() machine.Phase {
			m, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: vm.Name})
			if err != nil {
				return ""
			}
			return m.Status.Phase
		}
		began := w.at
		p = w.until(p, func() bool { return phase() == machine.PhaseUnknown }, neverDies(t))
		if took := w.at.Sub(began); took > 2*time.Minute {
			t.Fatalf("it took %v until it was noticed\n%s", took, w.dump())
		}
		began = w.at
		if rapid.Bool().Draw(t, "restart") {
			p = w.start(&testkit.Fuse{}, false)
		}
		if rapid.Bool().Draw(t, "outage") {
			out := codes.New(codes.Unavailable, "out")
			l.status = func(*machine.Machine, *statusResponse, error) (*statusResponse, error) { return nil, out }
			l.list = func(map[string]string) (*listResponse, error) { return nil, out }
			p = w.until(p, w.lasts(time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes"))*time.Minute), neverDies(t))
			if phase() != machine.PhaseUnknown {
				t.Fatalf("an outage decided\n%s", w.dump())
			}
			l.status, l.list = nil, nil
		}
		if rapid.Bool().Draw(t, "well") {
			w.provider.SetUnhealthy(vm.ID, "")
			p = w.until(p, w.available(n), neverDies(t))
			w.until(p, w.lasts(time.Hour), neverDies(t))
			if len(w.made) != n {
				t.Fatalf("%d machines were made\n%s", len(w.made), w.dump())
			}
			return
		}
		p = w.until(p, func() bool { return phase() != machine.PhaseUnknown }, neverDies(t))
		if took := w.at.Sub(began); took < 10*time.Minute {
			t.Fatalf("given up after %v\n%s", took, w.dump())
		}
		w.until(p, w.available(n), neverDies(t))
		if len(w.made) != n+1 {
			t.Fatalf("%d machines were made\n%s", len(w.made), w.dump())
		}
	})
}

// TestListsThatCallVMsUnhealthy: a list alone changes nothing. The driver is asked once for each unhealthy VM.
// Invariants: P54
func TestListsThatCallVMsUnhealthy(t *testing.T) {
	w, l, p := clusterless(t, 3)
	l.list = func(vms map[string]string) (*listResponse, error) {
		sick := make(map[string]bool)
		for id := range vms {
			sick[id] = true
		}
		return &listResponse{Machines: vms, Unhealthy: sick}, nil
	}
	p = w.until(p, w.lasts(2*time.Minute), neverDies(t))
	asked, listed, writes := count(w, codes.GetMachineStatus), count(w, codes.ListMachines), w.writes
	w.until(p, w.lasts(time.Hour), neverDies(t))
	require.Equal(t, writes, w.writes)
	require.Positive(t, count(w, codes.GetMachineStatus)-asked)
	require.LessOrEqual(t, count(w, codes.GetMachineStatus)-asked, 3*(count(w, codes.ListMachines)-listed))
	require.Equal(t, 3, w.phases()[machine.PhaseAvailable])
}

// TestP54EachManagerLooksAfterItsMachines: a fleet is divided among managers. Each notices if VMs of its own
// machines disappear, and ignores those of others. A manager that deletes no orphans deletes no VM.
// Invariants: P54
func TestP54EachManagerLooksAfterItsMachines(t *testing.T) {
	w, _, p := clusterless(t, 4)
	w.until(p, w.lasts(15*time.Minute), neverDies(t))
	vms := w.provider.VMs()
	own := object.Key{Namespace: namespace, Name: vms[0].Name}
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
		o.Cluster = nil
		o.Only = func(kind manager.Kind, key object.Key) bool { return kind == manager.KindMachine && key == own }
	}
	orphanID := w.addOrphanVM("blue", "web-lost")
	require.True(t, w.provider.Remove(vms[0].ID))
	require.True(t, w.provider.Remove(vms[1].ID))
	began := w.at
	p = w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.lost > 0 }, neverDies(t))
	require.LessOrEqual(t, w.at.Sub(began), 3*time.Minute)
	require.Equal(t, 1, w.countEvents("VMNotListed: machine "))
	w.until(p, w.lasts(time.Hour), neverDies(t))
	require.Equal(t, 1, w.lost)
	require.True(t, w.vmExists(orphanID))
}

// TestLostVMsAreReplaced: without a cluster, machines whose VMs are gone at the provider are replaced after two
// listings, as many at a time as the budget allows. Each costs one call after the listing, and one before it is
// marked failed.
// Invariants: P24 P28
func TestLostVMsAreReplaced(t *testing.T) {
	const n = 10
	w, _, p := clusterless(t, n)
	p = w.until(p, w.lasts(2*time.Second), neverDies(t))
	for _, vm := range w.provider.VMs() {
		require.True(t, w.provider.Remove(vm.ID))
	}
	began, asked := w.at, count(w, codes.GetMachineStatus)
	p = w.until(p, func() bool { return w.lost > 0 }, neverDies(t))
	require.LessOrEqual(t, w.at.Sub(began), 90*time.Minute, "all are missing at a time: an hour of listings, and the machines' next look")
	require.Equal(t, 1, w.countEvents("VMLost: VM "))
	most := 0
	p = w.until(p, func() bool {
		missing := 0
		for _, key := range keysOf(w.machines) {
			if m, _ := w.machines.Get(ctx, key); m.Deleted() || m.Status.Phase != machine.PhaseAvailable {
				missing++
			}
		}
		most = max(most, missing)
		return w.available(n)()
	}, neverDies(t))
	require.Equal(t, n, w.lost)
	require.Len(t, w.made, 2*n)
	require.LessOrEqual(t, most, 2, "one machine is replaced at a time, so two are not available")
	require.LessOrEqual(t, count(w, codes.GetMachineStatus), asked+4*n, "calls after each listing, before the machine is marked failed, and before the create")

	calls, writes := w.calls, w.writes
	w.until(p, w.lasts(3*time.Hour), neverDies(t))
	calls[codes.ListMachines] = w.calls[codes.ListMachines]
	require.Equal(t, calls, w.calls)
	require.Equal(t, writes, w.writes)
}

// TestListsThatMissVMs: whatever a list leaves out, and for however long, no machine is marked failed whose VM the
// provider knows. The VM is asked for once after each listing, and nothing is written.
// Invariants: P28 P41
func TestListsThatMissVMs(t *testing.T) {
	for name, c := range map[string]struct {
		list  func(map[string]string) (*listResponse, error)
		asked bool
	}{
		"nothing":     {func(map[string]string) (*listResponse, error) { return &listResponse{}, nil }, true},
		"no response": {func(map[string]string) (*listResponse, error) { return nil, nil }, false},
		"another VM": {func(map[string]string) (*listResponse, error) {
			return &listResponse{Machines: map[string]string{"memory:///blue/77": "other"}}, nil
		}, true},
		"other IDs than at creation": {func(vms map[string]string) (*listResponse, error) {
			other := make(map[string]string)
			for id, name := range vms {
				other[id+"?zone=1"] = name
			}
			return &listResponse{Machines: other}, nil
		}, false},
		"no names": {func(vms map[string]string) (*listResponse, error) {
			for id := range vms {
				vms[id] = ""
			}
			return &listResponse{Machines: vms}, nil
		}, false},
		"nothing, and an error": {func(map[string]string) (*listResponse, error) {
			return &listResponse{}, codes.New(codes.Unavailable, "there is more")
		}, false},
		"nothing every other time": {everyOther(), true},
	} {
		t.Run(name, func(t *testing.T) {
			w, l, p := clusterless(t, 3)
			p = w.until(p, w.lasts(20*time.Minute), neverDies(t))
			own := w.provider.VMs()
			l.list = c.list
			asked, listed, writes := count(w, codes.GetMachineStatus), count(w, codes.ListMachines), w.writes
			w.until(p, w.lasts(5*time.Hour), neverDies(t))
			require.Zero(t, w.lost)
			require.Equal(t, own, w.provider.VMs())
			require.Equal(t, writes, w.writes)
			questions := count(w, codes.GetMachineStatus) - asked
			if name != "nothing every other time" {
				require.Equal(t, c.asked, questions > 0, "%d", questions)
			}
			require.LessOrEqual(t, questions, 3*(count(w, codes.ListMachines)-listed))
		})
	}
}

func everyOther() func(map[string]string) (*listResponse, error) {
	n := 0
	return func(vms map[string]string) (*listResponse, error) {
		if n++; n%2 == 0 {
			return &listResponse{}, nil
		}
		return &listResponse{Machines: vms}, nil
	}
}

// TestOnlyNotFoundCounts: if no list names a machine's VM, only the answer NOT_FOUND has an effect. A VM that lists
// name is not asked for.
// Invariants: P41
func TestOnlyNotFoundCounts(t *testing.T) {
	for _, code := range []codes.Code{codes.Unimplemented, codes.Unavailable, codes.PermissionDenied, codes.OutOfRange, codes.Uninitialized} {
		t.Run(code.Contract(), func(t *testing.T) {
			w, l, p := clusterless(t, 3)
			gone := w.provider.VMs()[0]
			require.True(t, w.provider.Remove(gone.ID))
			l.status = func(*machine.Machine, *statusResponse, error) (*statusResponse, error) {
				return nil, codes.New(code, "for some reason")
			}
			asked := count(w, codes.GetMachineStatus)
			p = w.until(p, w.lasts(2*time.Hour), neverDies(t))
			require.Zero(t, w.lost)
			require.Greater(t, count(w, codes.GetMachineStatus), asked+2, "after each listing")
			require.LessOrEqual(t, count(w, codes.GetMachineStatus), asked+121, "each minute")
			l.status = nil
			w.until(p, func() bool { return w.available(3)() && w.lost == 1 }, neverDies(t))
		})
	}
	w, l, p := clusterless(t, 3)
	l.status = func(*machine.Machine, *statusResponse, error) (*statusResponse, error) {
		return nil, codes.New(codes.NotFound, "there is none")
	}
	asked := count(w, codes.GetMachineStatus)
	w.until(p, w.lasts(2*time.Hour), neverDies(t))
	require.Zero(t, w.lost)
	require.Equal(t, asked, count(w, codes.GetMachineStatus))
}

// TestNewVMsAreNotMissed: no machine is replaced because lists and answers lag by ten minutes.
// Invariants: P41
func TestNewVMsAreNotMissed(t *testing.T) {
	w, l, p := clusterless(t, 3)
	born := map[string]time.Time{}
	young := func(name string) bool { return w.at.Sub(born[name]) < 10*time.Minute }
	l.create = func(m *machine.Machine, r *createResponse, err error) (*createResponse, error) {
		born[m.Name] = w.at
		return r, err
	}
	l.list = func(vms map[string]string) (*listResponse, error) {
		for id, name := range vms {
			if young(name) {
				delete(vms, id)
			}
		}
		return &listResponse{Machines: vms}, nil
	}
	l.status = func(m *machine.Machine, r *statusResponse, err error) (*statusResponse, error) {
		if _, made := born[m.Name]; made && young(m.Name) {
			return nil, codes.New(codes.NotFound, "not yet")
		}
		return r, err
	}
	for size := range 20 {
		w.change(func(d *deployment.Deployment) {
			d.Spec.Template.Annotations = map[string]string{"version": fmt.Sprint(size)}
		})
		stop := w.at.Add(7 * time.Minute)
		p = w.until(p, func() bool { return w.at.After(stop) && w.available(3)() }, neverDies(t))
	}
	require.Zero(t, w.lost)
}

// TestMissingVMsThatAreIgnored: machines that are paused, kept for inspection, or in a frozen fleet are left
// alone. In a cluster the node's health decides.
// Invariants: P41
func TestMissingVMsThatAreIgnored(t *testing.T) {
	for name, key := range map[string]string{"paused": machine.DefaultPolicy().Keys.Paused, "preserved": preserveKey} {
		t.Run(name, func(t *testing.T) {
			w, _, p := clusterless(t, 3)
			gone := w.provider.VMs()[0]
			value := map[string]string{"paused": "true", "preserved": "now"}[name]
			annotate(w, w.machines, object.Key{Namespace: namespace, Name: gone.Name}, key, value)
			require.True(t, w.provider.Remove(gone.ID))
			asked := count(w, codes.GetMachineStatus)
			w.until(p, w.lasts(5*time.Hour), neverDies(t))
			require.Zero(t, w.lost)
			require.Equal(t, asked, count(w, codes.GetMachineStatus))
		})
	}
	t.Run("frozen", func(t *testing.T) {
		w, _, p := clusterless(t, 3)
		w.until(p, w.lasts(20*time.Minute), neverDies(t))
		require.True(t, w.provider.Remove(w.provider.VMs()[0].ID))
		w.controlDown = true
		p = w.until(p, w.lasts(20*time.Minute), neverDies(t))
		require.Zero(t, w.lost)
		w.controlDown = false
		w.until(p, func() bool { return w.available(3)() && w.lost == 1 }, neverDies(t))
	})
	t.Run("with a cluster", func(t *testing.T) {
		w, l, p := badlyDriven(t)
		l.list = func(map[string]string) (*listResponse, error) { return &listResponse{}, nil }
		l.status = func(*machine.Machine, *statusResponse, error) (*statusResponse, error) {
			return nil, codes.New(codes.NotFound, "there is none")
		}
		asked := count(w, codes.GetMachineStatus)
		w.until(p, w.lasts(5*time.Hour), neverDies(t))
		require.Zero(t, w.lost)
		require.Equal(t, asked, count(w, codes.GetMachineStatus))
	})
}

// TestLyingListsCostNoMachine: lists leave out or invent anything, and VMs are lost. Only machines whose VMs are
// gone are marked failed, and all of them are once lists are correct.
// Invariants: P41
func TestLyingListsCostNoMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, l, p := clusterless(t, 4)
		gone := map[string]bool{}
		w.refuse = func(s driver.CallInfo) error {
			if s.Method == codes.DeleteMachine && s.Object.Name != "" && !gone[s.Object.Name] && w.vmExists(vmOf(w, s.Object.Name)) {
				t.Fatalf("the VM of machine %s is deleted\n%s", s.Object.Name, w.dump())
			}
			return nil
		}
		l.list = func(vms map[string]string) (*listResponse, error) {
			for _, id := range slices.Sorted(maps.Keys(vms)) {
				switch rapid.IntRange(0, 3).Draw(t, "list") {
				case 0:
					delete(vms, id)
				case 1:
					delete(vms, id)
					vms[id+"?"] = "other"
				}
			}
			return &listResponse{Machines: vms}, nil
		}
		lost := 0
		for range rapid.IntRange(0, 3).Draw(t, "lost") {
			if vms := w.provider.VMs(); len(vms) > 0 {
				vm := vms[rapid.IntRange(0, len(vms)-1).Draw(t, "which")]
				gone[vm.Name] = true
				w.provider.Remove(vm.ID)
				lost++
			}
			if rapid.Bool().Draw(t, "restart") {
				p = w.start(&testkit.Fuse{}, false)
			}
			p = w.until(p, w.lasts(time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes"))*time.Minute), neverDies(t))
		}
		l.list = nil
		w.until(p, w.available(4), neverDies(t))
		if w.lost != lost {
			t.Fatalf("%d machines were given up, %d VMs were lost\n%s", w.lost, lost, w.dump())
		}
	})
}

func vmOf(w *world, name string) string {
	for _, vm := range w.provider.VMs() {
		if vm.Name == name {
			return vm.ID
		}
	}
	return ""
}

// TestLostVMKilledAnywhere: wherever the process dies, a machine whose VM is gone is replaced, and no other.
// Invariants: P26
func TestLostVMKilledAnywhere(t *testing.T) {
	replace := func(blowAt int, after bool) int {
		w, _, p := clusterless(t, 3)
		p = w.until(p, w.lasts(12*time.Minute), neverDies(t))
		require.True(t, w.provider.Remove(w.provider.VMs()[0].ID))
		p.fuse.Calls, p.fuse.BlowAt, p.fuse.BlowAfter = 0, blowAt, after
		p = w.until(p, func() bool { return len(w.made) > 3 && w.available(3)() }, func() *process { return w.start(&testkit.Fuse{}, false) })
		require.LessOrEqual(t, w.lost, 1, "no event may be emitted for the machine that the process died over")
		require.Len(t, w.made, 4)
		return p.fuse.Calls
	}
	total := replace(0, false)
	for _, after := range []bool{false, true} {
		for n := range testkit.EveryCall(total, 7) {
			replace(n, after)
		}
	}
}
