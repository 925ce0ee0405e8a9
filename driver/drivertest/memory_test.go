package drivertest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// account is a Memory with a class in it.
type account struct {
	*testing.T
	*drivertest.Memory
	class *machine.Class
}

func newAccount(t *testing.T) *account {
	m := drivertest.NewMemory(drivertest.MemoryOptions{})
	return &account{t, m, m.Class(object.Key{Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "small"})}
}

func named(name, id string) *machine.Machine {
	return &machine.Machine{Meta: object.Meta{Key: object.Key{Name: name}}, Spec: machine.Spec{ProviderID: id}}
}

func (a *account) create(name string) (string, error) {
	made, err := a.CreateMachine(a.Context(), &driver.CreateMachineRequest{Machine: named(name, ""), Class: a.class})
	if made == nil {
		return "", err
	}
	return made.ProviderID, err
}

func (a *account) delete(name, id string) error {
	_, err := a.DeleteMachine(a.Context(), &driver.DeleteMachineRequest{Machine: named(name, id), Class: a.class})
	return err
}

func (a *account) status(name, id string) (string, error) {
	found, err := a.GetMachineStatus(a.Context(), &driver.GetMachineStatusRequest{Machine: named(name, id), Class: a.class})
	if found == nil {
		return "", err
	}
	return found.ProviderID, err
}

func (a *account) ids() []string {
	ids := []string{}
	for _, vm := range a.VMs() {
		ids = append(ids, vm.ID)
	}
	return ids
}

func (a *account) want(ids ...string) {
	a.Helper()
	if got := a.ids(); !slices.Equal(got, ids) || a.Count() != len(ids) {
		a.Errorf("there are the VMs %q, counted %d, not %q", got, a.Count(), ids)
	}
}

func TestMemoryFaults(t *testing.T) {
	a := newAccount(t)
	first, second := errors.New("first"), errors.New("second")
	a.FailNext(codes.CreateMachine, first)
	a.FailNext(codes.CreateMachine, second)
	a.FailAfter(codes.CreateMachine, codes.New(codes.Unavailable, "lost"))
	for _, want := range []error{first, second} {
		if _, err := a.create("a"); !errors.Is(err, want) {
			t.Errorf("create: %v, want %v", err, want)
		}
		a.want()
	}
	if id, err := a.create("a"); codes.Of(err) != codes.Unavailable || id != "" {
		t.Errorf("create: %q, %v", id, err)
	}
	a.want("memory:///blue/1")
	if id, err := a.create("a"); err != nil || id != "memory:///blue/1" {
		t.Errorf("create after the faults: %q, %v", id, err)
	}
}

// FailAfter affects the next call of its kind that would have succeeded, and no other.
func TestMemoryKeepsFaultsForTheirCalls(t *testing.T) {
	a := newAccount(t)
	a.FailAfter(codes.GetMachineStatus, codes.New(codes.Unavailable, "lost"))
	if _, err := a.status("a", ""); codes.Of(err) != codes.NotFound {
		t.Errorf("status: %v", err)
	}
	if _, err := a.create("a"); err != nil {
		t.Errorf("create: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := &driver.GetMachineStatusRequest{Machine: named("a", ""), Class: a.class}
	if _, err := a.GetMachineStatus(ctx, request); !errors.Is(err, context.Canceled) || codes.Of(err) != codes.Canceled {
		t.Errorf("status, canceled: %v", err)
	}
	if _, err := a.status("a", ""); codes.Of(err) != codes.Unavailable {
		t.Errorf("status: %v", err)
	}
	if _, err := a.status("a", ""); err != nil {
		t.Errorf("status: %v", err)
	}
}

func TestMemoryWithNamesakes(t *testing.T) {
	a := newAccount(t)
	made, removed := map[string]bool{}, map[string]bool{}
	a.Watch(func(vm drivertest.MemoryVM, gone bool) {
		if made[vm.ID] = true; gone {
			removed[vm.ID] = true
		}
	})
	old := a.Add(drivertest.MemoryVM{ID: "ignored", Name: "a", Cluster: "blue", Size: "small", Initialized: true})
	twin := a.Add(drivertest.MemoryVM{Name: "a", Cluster: "blue", Size: "small", Initialized: true})
	green := a.Add(drivertest.MemoryVM{Name: "a", Cluster: "green", Size: "small", Initialized: true})
	a.want("memory:///blue/1", "memory:///blue/2", "memory:///green/3")
	if id, err := a.create("a"); err != nil || id != old {
		t.Errorf("create: %q, %v", id, err)
	}
	if _, err := a.status("a", ""); codes.Of(err) != codes.OutOfRange {
		t.Errorf("status by name: %v", err)
	}
	if id, err := a.status("a", twin); err != nil || id != twin {
		t.Errorf("status by ID: %q, %v", id, err)
	}
	if err := a.delete("a", twin); err != nil {
		t.Error(err)
	}
	a.want(old, green)
	a.Add(drivertest.MemoryVM{Name: "a", Cluster: "blue", Size: "small"})
	if err := a.delete("a", ""); err != nil {
		t.Error(err)
	}
	a.want(green)
	if !a.Remove(green) || a.Remove(green) {
		t.Error("Remove does not tell whether there was something")
	}
	a.want()
	if len(made) != 4 || len(removed) != 4 {
		t.Errorf("seen were %v, and removed %v; 4 VMs were made, and all are gone", made, removed)
	}
	if id, err := a.create("a"); err != nil || id != "memory:///blue/5" {
		t.Errorf("create: %q, %v; IDs are not used twice", id, err)
	}
}

// Memory takes and returns copies: changing them does not change its VMs.
func TestMemoryGivesCopies(t *testing.T) {
	a := newAccount(t)
	tags := map[string]string{"k": "v"}
	a.Add(drivertest.MemoryVM{Name: "a", Cluster: "blue", Size: "small", Tags: tags})
	tags["k"] = "changed"
	a.VMs()[0].Tags["k"] = "changed too"
	if got := a.VMs()[0].Tags["k"]; got != "v" {
		t.Errorf("tag is %q", got)
	}
}

func TestMemoryUpdatesTagsOnly(t *testing.T) {
	a := newAccount(t)
	id, err := a.create("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		wanted []byte
		code   codes.Code
	}{
		{drivertest.MemorySpec{Cluster: "blue", Size: "small", Tags: map[string]string{"k": "v"}}.Encode(), codes.OK},
		{drivertest.MemorySpec{Cluster: "blue", Size: "large"}.Encode(), codes.Unimplemented},
		{drivertest.MemorySpec{Cluster: "green", Size: "small"}.Encode(), codes.Unimplemented},
		{[]byte(`{"cluster":"blue","size":"small"} x`), codes.Internal},
		{[]byte(`{"cluster":"blue","size":"small","colour":"red"}`), codes.Internal},
	} {
		_, err := a.UpdateMachine(t.Context(), &driver.UpdateMachineRequest{
			Machine: named("a", id), Class: a.class, LastApplied: a.class.ProviderSpec, Wanted: c.wanted,
		})
		if codes.Of(err) != c.code {
			t.Errorf("update to %s: %v, want %s", c.wanted, err, c.code)
		}
	}
	elses := a.VMs()[0]
	elses.Tags = map[string]string{"theirs": "x", "old": "y"}
	elses.Name = "b"
	other := a.Add(elses)
	_, err = a.UpdateMachine(t.Context(), &driver.UpdateMachineRequest{
		Machine: named("b", other), Class: a.class,
		LastApplied: drivertest.MemorySpec{Cluster: "blue", Size: "small", Tags: map[string]string{"old": "y"}}.Encode(),
		Wanted:      drivertest.MemorySpec{Cluster: "blue", Size: "small", Tags: map[string]string{"new": "z"}}.Encode(),
	})
	if tags := a.VMs()[1].Tags; err != nil || !maps.Equal(tags, map[string]string{"theirs": "x", "new": "z"}) {
		t.Errorf("tags are %v: %v", tags, err)
	}
	if vm := a.VMs()[0]; vm.Tags["k"] != "v" || vm.Size != "small" {
		t.Errorf("the VM is %+v", vm)
	}
}

func TestMemoryDeclares(t *testing.T) {
	a := newAccount(t)
	if fields := driver.UpdatableFields(a); !slices.Equal(fields, []string{"tags"}) || !driver.ProviderIDsMatch(a) {
		t.Errorf("fields %q, IDs match %t", fields, driver.ProviderIDsMatch(a))
	}
}
