package manager_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

type (
	createResponse = driver.CreateMachineResponse
	statusResponse = driver.GetMachineStatusResponse
	listResponse   = driver.ListMachinesResponse
)

// badDriver is a driver of a provider that works. Functions replace its answers by garbage.
type badDriver struct {
	*drivertest.Memory
	create func(m *machine.Machine, r *createResponse, err error) (*createResponse, error)
	status func(m *machine.Machine, r *statusResponse, err error) (*statusResponse, error)
	list   func(map[string]string) (*listResponse, error)
	delete func(m *machine.Machine) bool // false: the driver says OK and does nothing
}

func (l *badDriver) CreateMachine(ctx context.Context, q *driver.CreateMachineRequest) (*createResponse, error) {
	r, err := l.Memory.CreateMachine(ctx, q)
	if l.create != nil {
		return l.create(q.Machine, r, err)
	}
	return r, err
}

func (l *badDriver) GetMachineStatus(ctx context.Context, q *driver.GetMachineStatusRequest) (*statusResponse, error) {
	r, err := l.Memory.GetMachineStatus(ctx, q)
	if l.status != nil {
		return l.status(q.Machine, r, err)
	}
	return r, err
}

func (l *badDriver) ListMachines(ctx context.Context, q *driver.ListMachinesRequest) (*listResponse, error) {
	r, err := l.Memory.ListMachines(ctx, q)
	if err == nil && l.list != nil {
		return l.list(maps.Clone(r.Machines))
	}
	return r, err
}

func (l *badDriver) DeleteMachine(ctx context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if l.delete != nil && !l.delete(q.Machine) {
		return nil, nil //nolint:nilnil // what some drivers answer
	}
	return l.Memory.DeleteMachine(ctx, q)
}

// badlyDriven returns a running fleet of three, and the driver that answers for it from now on.
func badlyDriven(t *testing.T) (*world, *badDriver, *process) {
	w := guardedWorld(t)
	l := &badDriver{Memory: w.provider}
	w.badDriver = l
	w.fleet()
	return w, l, w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
}

// TestGarbageLists: whatever a list holds, and for however long, no VM of a machine is deleted. Orphans that the
// list names are deleted, and odd entries are reported.
// Invariants: P15
func TestGarbageLists(t *testing.T) {
	huge := make(map[string]string)
	for i := range 3_000 {
		huge[fmt.Sprint("memory:///blue/x", i)] = "gone"
	}
	for name, c := range map[string]struct {
		list func(map[string]string) (*listResponse, error)
		says string
		kept bool // the orphan stays
	}{
		"a VM without ID":     {says: "VMWithoutID", list: with("", "web-7")},
		"a blank ID":          {says: "VMWithoutID", list: with("  ", "web-7")},
		"a VM without name":   {says: "VMWithoutName", list: with("memory:///blue/77", "")},
		"a blank name":        {says: "VMWithoutName", list: with("memory:///blue/77", " ")},
		"one that is no more": {list: with("memory:///blue/77", "web-7")},
		"nothing":             {kept: true, list: func(map[string]string) (*listResponse, error) { return &listResponse{}, nil }},
		"no response":         {kept: true, says: "ListVMsFailed", list: func(map[string]string) (*listResponse, error) { return nil, nil }},
		"half, and an error": {kept: true, says: "ListVMsFailed", list: func(vms map[string]string) (*listResponse, error) {
			return &listResponse{Machines: vms}, codes.New(codes.Unavailable, "there is more")
		}},
		"a wrong code": {kept: true, says: "ListVMsFailed", list: func(vms map[string]string) (*listResponse, error) {
			return &listResponse{Machines: vms}, codes.New(codes.Code(99), "strange")
		}},
		"other IDs than at creation": {kept: true, says: "OwnVMNotListed", list: func(vms map[string]string) (*listResponse, error) {
			other := make(map[string]string)
			for id, name := range vms {
				if name != "web-lost" {
					other[id+"?zone=1"] = name
				}
			}
			return &listResponse{Machines: other}, nil
		}},
		"a very long list": {kept: true, says: "TooManyOrphans", list: func(vms map[string]string) (*listResponse, error) {
			maps.Copy(vms, huge)
			for id, name := range vms {
				if name == "web-lost" {
					delete(vms, id)
				}
			}
			return &listResponse{Machines: vms}, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, l, p := badlyDriven(t)
			own := w.provider.VMs()
			orphanID := w.addOrphanVM("blue", "web-lost")
			l.list = c.list
			hours := 3 * time.Hour
			if name == "a very long list" {
				hours = 16 * time.Minute
			}
			require.NoError(t, w.watch(p, manager.KindOrphans, hours))
			require.Equal(t, c.kept, w.vmExists(orphanID))
			for _, vm := range own {
				require.True(t, w.vmExists(vm.ID), "the VM of %s", vm.Name)
			}
			require.Equal(t, c.says != "", c.says != "" && w.countEvents(c.says) > 0, "%v", w.events)
		})
	}
}

// with adds a VM to a list.
func with(id, name string) func(map[string]string) (*listResponse, error) {
	return func(vms map[string]string) (*listResponse, error) {
		vms[id] = name
		return &listResponse{Machines: vms}, nil
	}
}

// TestListsOfOtherClusters: a list that names VMs of other clusters is believed, unless OrphanPrefix says how the
// names of this fleet begin. The driver itself refuses their deletion.
func TestListsOfOtherClusters(t *testing.T) {
	w, l, p := badlyDriven(t)
	foreign := w.addOrphanVM("red", "db-1")
	l.list = with(foreign, "db-1")
	w.safety.OrphanPrefix = "web-"
	require.NoError(t, w.watch(p, manager.KindOrphans, time.Hour))
	require.True(t, w.vmExists(foreign))
	require.Positive(t, w.countEvents("VMOfOthers"))
}

// TestListsWithLongNames: a VM whose name is too long belongs to no machine, and is no orphan. It is reported and
// left alone; the other orphans of its class are deleted.
// Invariants: P42
func TestListsWithLongNames(t *testing.T) {
	w, l, p := badlyDriven(t)
	own := w.provider.VMs()
	long, orphanID := w.addOrphanVM("blue", "web-long"), w.addOrphanVM("blue", "web-7")
	l.list = func(vms map[string]string) (*listResponse, error) {
		vms[long] = "web-" + strings.Repeat("x", driver.MaxName)
		vms["memory:///blue/"+strings.Repeat("x", driver.MaxID)] = "web-8"
		return &listResponse{Machines: vms}, nil
	}
	require.NoError(t, w.watch(p, manager.KindOrphans, 2*time.Hour))
	require.True(t, w.vmExists(long))
	require.False(t, w.vmExists(orphanID))
	require.Zero(t, w.countEvents("OrphanDeleteFailed"), "no other deletion was tried")
	require.Positive(t, w.countEvents("VMWithoutName: class fleet/small lists VM "+long+" "))
	for _, vm := range own {
		require.True(t, w.vmExists(vm.ID), "the VM of %s", vm.Name)
	}
}

// TestListsThatLag: lists omit new VMs for ten minutes, and name deleted VMs for as long. No VM is made
// twice or lost, and no VM of a machine is deleted.
// Invariants: P15
func TestListsThatLag(t *testing.T) {
	w, l, p := badlyDriven(t)
	type sight struct {
		at  time.Time
		vms map[string]string
	}
	var seen []sight
	l.list = func(vms map[string]string) (*listResponse, error) {
		seen = append(seen, sight{w.at, vms})
		for i := len(seen) - 1; i >= 0; i-- {
			if w.at.Sub(seen[i].at) >= 10*time.Minute {
				return &listResponse{Machines: seen[i].vms}, nil
			}
		}
		return &listResponse{}, nil
	}
	for _, size := range []string{"2", "3", "4"} {
		stop := w.at.Add(50 * time.Minute)
		w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": size} })
		w.until(p, func() bool { return w.at.After(stop) && w.settled(3)() }, neverDies(t))
	}
	require.Equal(t, 3, w.provider.Count())
	require.Equal(t, 12, len(w.made), "no machine was made twice or lost")
}

// TestCreateAnswersAnothersVM: no call's answer makes a machine record the VM of another machine, so that VM is
// not deleted with the machine. Once the driver answers correctly, the machine gets its own VM.
// Invariants: P13
func TestCreateAnswersAnothersVM(t *testing.T) {
	for _, call := range []string{"create", "status", "node"} {
		t.Run(call, func(t *testing.T) {
			w, l, p := badlyDriven(t)
			first := w.provider.VMs()[0]
			var made []string
			switch call {
			case "create":
				l.create = func(m *machine.Machine, r *createResponse, err error) (*createResponse, error) {
					made = append(made, m.Name)
					return &createResponse{ProviderID: first.ID, NodeName: first.Name}, err
				}
				l.status = func(m *machine.Machine, r *statusResponse, err error) (*statusResponse, error) {
					return nil, codes.New(codes.Unimplemented, "there is no such call")
				}
			case "status":
				l.status = func(m *machine.Machine, r *statusResponse, err error) (*statusResponse, error) {
					made = append(made, m.Name)
					return &statusResponse{ProviderID: first.ID, NodeName: first.Name}, nil
				}
			case "node":
				l.create = func(m *machine.Machine, r *createResponse, err error) (*createResponse, error) {
					made = append(made, m.Name)
					if r != nil && len(made) <= 3 { // the machine is replaced at once
						r.NodeName = first.Name
					}
					return r, err
				}
			}
			end := w.at.Add(2 * time.Hour)
			w.bounded = true
			w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 4 })
			w.until(p, func() bool { return w.at.After(end) }, neverDies(t))
			require.NotEmpty(t, made)
			require.True(t, w.vmExists(first.ID), "the VM was deleted with another machine")
			if call != "node" { // after that call, the machine is replaced at once
				require.Equal(t, 3, w.phases()[machine.PhaseRunning])
			}
			l.create, l.status = nil, nil
			w.until(p, func() bool { return w.phases()[machine.PhaseRunning] == 4 && w.provider.Count() == 4 }, neverDies(t))
			require.True(t, w.vmExists(first.ID))
		})
	}
}

// TestStatusAnswersAnotherID: the provider ID that a machine has recorded does not change.
func TestStatusAnswersAnotherID(t *testing.T) {
	w, l, p := badlyDriven(t)
	l.status = func(m *machine.Machine, r *statusResponse, err error) (*statusResponse, error) {
		if r != nil && m.Spec.ProviderID != "" {
			r.ProviderID = "memory:///blue/999"
		}
		return r, err
	}
	l.create = func(m *machine.Machine, r *createResponse, err error) (*createResponse, error) {
		return r, err
	}
	before := w.provider.VMs()
	for _, vm := range before { // after a failed step, each asks for its VM again
		m, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: vm.Name})
		require.NoError(t, err)
		m = m.Clone()
		m.Status.Phase = machine.PhaseCrashLoopBackOff
		m.Status.LastOperation = machine.Operation{Kind: machine.OperationCreate, State: machine.StateFailed, Stage: machine.StageInitialized, Code: codes.Unavailable, Time: w.at}
		_, err = w.machines.UpdateStatus(ctx, m)
		require.NoError(t, err)
	}
	asked := count(w, codes.GetMachineStatus)
	w.until(p, func() bool { return count(w, codes.GetMachineStatus) >= asked+3 && w.settled(3)() }, neverDies(t))
	require.Equal(t, before, w.provider.VMs())
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(p, w.empty, neverDies(t))
}

// TestDeleteThatDoesNothing: a VM that still exists after DeleteMachine said OK is an orphan, and is deleted once
// that works.
// Invariants: P14
func TestDeleteThatDoesNothing(t *testing.T) {
	w, l, p := badlyDriven(t)
	vms := w.provider.VMs()
	idle := true
	l.delete = func(*machine.Machine) bool { return !idle }
	for _, vm := range vms {
		w.orphanVMs[vm.ID] = true
	}
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 0 })
	w.until(p, func() bool { return len(keysOf(w.machines)) == 0 }, neverDies(t))
	require.Equal(t, vms, w.provider.VMs())
	tries := count(w, codes.DeleteMachine)
	require.NoError(t, w.watch(p, manager.KindOrphans, time.Hour))
	require.Equal(t, vms, w.provider.VMs())
	require.Greater(t, count(w, codes.DeleteMachine), tries)
	require.LessOrEqual(t, count(w, codes.DeleteMachine), tries+3*130, "each VM is tried at most every 30 s")
	idle = false
	require.NoError(t, w.watch(p, manager.KindOrphans, 20*time.Minute))
	require.Zero(t, w.provider.Count())
}

// TestNilAnswers: neither a response nor an error is a failure if a response is needed. Nothing is made twice, and
// the fleet runs once the driver answers.
func TestNilAnswers(t *testing.T) {
	w, l, p := badlyDriven(t)
	silent := true
	l.create = func(_ *machine.Machine, r *createResponse, err error) (*createResponse, error) {
		if silent {
			return nil, nil
		}
		return r, err
	}
	l.status = func(_ *machine.Machine, r *statusResponse, err error) (*statusResponse, error) {
		if silent {
			return nil, nil
		}
		return r, err
	}
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 4 })
	end := w.at.Add(10 * time.Minute)
	w.until(p, func() bool { return w.at.After(end) }, neverDies(t))
	require.Equal(t, 3, w.phases()[machine.PhaseRunning])
	require.LessOrEqual(t, w.provider.Count(), 4)
	silent = false
	w.until(p, w.settled(4), neverDies(t))
}

// mangling is a driver that changes its requests.
type mangling struct {
	driver.Driver
	creates int
}

func (d *mangling) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	d.creates++
	answer, err := d.Driver.CreateMachine(ctx, r)
	r.Machine.Spec.Class.Name, r.Machine.Labels["a"], r.Class.Provider, r.Class.ProviderSpec = "other", "changed", "other", nil
	return answer, err
}

// TestRequestsBelongToTheDriver: a driver that changes its request changes nothing that is stored.
func TestRequestsBelongToTheDriver(t *testing.T) {
	provider := drivertest.NewMemory(drivertest.MemoryOptions{})
	d := &mangling{Driver: provider}
	o := manager.InMemory(nil)
	o.Driver = d
	m := reconciler(t, o, manager.KindMachine)
	class, err := o.Store.Classes.Create(ctx, provider.Class(object.Key{Namespace: fleetKey.Namespace, Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "s"}))
	require.NoError(t, err)
	before := class.Clone()
	made, err := o.Store.Machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey, Labels: map[string]string{"a": "b"}}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	for range 5 {
		_, err = m.Reconcile(context.Background(), made.Key)
		require.NoError(t, err)
	}
	require.Equal(t, 1, d.creates)
	stored, err := o.Store.Machines.Live().Get(ctx, made.Key)
	require.NoError(t, err)
	require.Equal(t, "b", stored.Labels["a"])
	require.Equal(t, "small", stored.Spec.Class.Name)
	kept, err := o.Store.Classes.Live().Get(ctx, class.Key)
	require.NoError(t, err)
	require.Equal(t, []any{before.Provider, before.ProviderSpec}, []any{kept.Provider, kept.ProviderSpec})
}

// TestListSpelledOtherwise: the provider lists the VMs of thirty machines by IDs and names in another spelling,
// but knows them by both. No machine loses its VM, and one event says so. A VM with an entirely different name is
// left alone, too, while no machine is listed.
// Invariants: P48
func TestListSpelledOtherwise(t *testing.T) {
	const n = 30
	for name, c := range map[string]struct {
		spell    func(string) string
		reported string
	}{
		"upper case": {strings.ToUpper, "SpelledOtherwise: class fleet/small lists 30 VMs"},
		"a prefix":   {func(s string) string { return "list:" + s }, "SpelledOtherwise: class fleet/small lists 30 VMs"},
		"a slash":    {func(s string) string { return s + "/" }, "SpelledOtherwise: class fleet/small lists 30 VMs"},
		"other IDs and names": {
			func(s string) string {
				return strings.NewReplacer("memory", "m", "web", "w", "/", "x", "-", "y").Replace(s)
			},
			"UnknownVMsOnly: 30 VMs that class fleet/small lists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := guardedWorld(t)
			l := &badDriver{Memory: w.provider}
			w.badDriver = l
			w.fleet()
			w.change(func(d *deployment.Deployment) { d.Spec.Replicas = n })
			p := w.until(w.start(&testkit.Fuse{}, false), w.settled(n), neverDies(t))
			own, ids := w.provider.VMs(), map[string]string{}
			for _, vm := range own {
				ids[c.spell(vm.ID)] = vm.ID
			}
			l.list = func(vms map[string]string) (*listResponse, error) {
				all := make(map[string]string, len(vms))
				for id, name := range vms {
					all[c.spell(id)] = c.spell(name)
				}
				return &listResponse{Machines: all}, nil
			}
			l.delete = func(m *machine.Machine) bool { // the provider ignores the spelling
				m.Spec.ProviderID = ids[m.Spec.ProviderID]
				return true
			}
			w.at = w.at.Add(15 * time.Minute)
			require.NoError(t, w.watch(p, manager.KindOrphans, 3*time.Hour))
			require.Equal(t, own, w.provider.VMs())
			require.Equal(t, 1, w.countEvents(c.reported), "%v", w.events)
		})
	}
}

// keepsDeletes records the deletes that it carries out.
type keepsDeletes struct {
	*drivertest.Memory
	deletes []*driver.DeleteMachineRequest
}

func (d *keepsDeletes) DeleteMachine(ctx context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.deletes = append(d.deletes, &driver.DeleteMachineRequest{Machine: q.Machine.Clone(), Class: q.Class.Clone(), Secret: q.Secret.Clone()})
	return d.Memory.DeleteMachine(ctx, q)
}

// TestLateDeleteSparesTheMachineMadeAgain: a process dies, and its delete without a provider ID takes effect when
// somebody has made a new machine of that name. The request carries the UID of the old machine, so a driver that
// marks VMs with it spares the new one.
func TestLateDeleteSparesTheMachineMadeAgain(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	d := &keepsDeletes{Memory: w.provider}
	o := w.options()
	o.Driver = d
	r := reconciler(t, o, manager.KindMachine)
	create := func() {
		_, err := w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}})
		require.NoError(t, err)
		w.look(r)
	}
	w.provider.FailNext(codes.CreateMachine, codes.New(codes.Unavailable, "later"))
	create()
	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	w.at = w.at.Add(time.Minute)
	w.look(r)
	require.Empty(t, keysOf(w.machines))
	require.Len(t, d.deletes, 1)
	require.Empty(t, d.deletes[0].Machine.Spec.ProviderID)

	create()
	w.join()
	w.look(r)
	require.Equal(t, machine.PhaseRunning, w.machine().Status.Phase)
	_, err := w.provider.DeleteMachine(ctx, d.deletes[0])
	require.NoError(t, err)
	require.Equal(t, 1, w.provider.Count(), "the late delete hit the machine made again")
	require.Equal(t, w.machine().UID, w.provider.VMs()[0].UID)
}
