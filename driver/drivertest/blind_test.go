package drivertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// bareSuite is for a driver without optional calls and without a fault hook.
func bareSuite(change func(*Setup, *Memory)) Suite {
	return Suite{New: func(*testing.T) Setup {
		m := NewMemory(MemoryOptions{})
		s := Setup{Driver: bare{memory: m}, Class: m.Class(object.Key{Name: "small"}, MemorySpec{Cluster: "blue", Size: "small"})}
		change(&s, m)
		return s
	}}
}

// Checks that this driver can't be subjected to are skipped with a reason, and none fails.
func TestChecksOfABareDriver(t *testing.T) {
	const blind = "some effects can't be seen"
	want := map[string]string{
		"Create/answers what the VM is called":                                blind,
		"Create/is idempotent by name":                                        blind,
		"Create/goes on with and without its note":                            blind,
		"Create/makes one VM a name":                                          blind,
		"Create/refuses a VM that differs":                                    "Setup has no Different",
		"Delete/removes the VM, and is idempotent":                            blind,
		"Delete/finds the VM by name when no ID was recorded":                 blind,
		"Delete/finds the VM of a machine made again under its name":          blind,
		"Delete/that comes late spares a machine made again under its name":   blind,
		"Delete/with a provider ID deletes exactly that VM":                   blind,
		"Delete/with the ID of a VM that is gone spares its namesake":         blind,
		"Status/of an absent VM is NotFound":                                  "the driver has no GetMachineStatus",
		"Status/answers what create did":                                      "the driver has no GetMachineStatus",
		"Status/is of the machine asked for":                                  "the driver has no GetMachineStatus",
		"Status/is read-only":                                                 "the driver has no GetMachineStatus",
		"Status/says Uninitialized where it is so":                            "the driver has no GetMachineStatus",
		"Initialize/is idempotent":                                            "the driver has no InitializeMachine",
		"Initialize/of an absent VM is NotFound":                              "the driver has no InitializeMachine",
		"List/has each VM under its ID, with its machine":                     "the driver has no ListMachines",
		"List/is the same again":                                              "the driver has no ListMachines",
		"Health/of a VM that works is not bad":                                "the driver has neither GetMachineStatus nor ListMachines",
		"Health/of a VM that fails is told by list and status":                "Setup has no Sicken",
		"Spelling/of IDs and names is one in create and list":                 "the driver has no ListMachines",
		"Spelling/of IDs and names is one in create and status":               "the driver has no GetMachineStatus",
		"List/has the VMs of every page":                                      "Setup has no PageSize",
		"Delete/removes what was made with the VM":                            "Setup has no Leftovers",
		"Quota/that is used up is ResourceExhausted":                          "Setup has no Exhaust",
		"Quota/that is raised makes one VM, and leaves nothing behind":        "Setup has no Exhaust",
		"List/has no VM that is gone":                                         "the driver has no ListMachines",
		"Cluster/others' VMs are not listed":                                  "Setup has no OtherCluster",
		"Cluster/others' VMs are not found":                                   "Setup has no OtherCluster",
		"Cluster/others' VMs are not adopted":                                 "Setup has no OtherCluster",
		"Cluster/others' VMs are not deleted":                                 "Setup has no OtherCluster",
		"Update/is there where fields are updatable":                          "the driver declares no updatable fields",
		"Update/to the same spec is OK":                                       "the driver has no UpdateMachine",
		"Update/is idempotent":                                                "Setup has no Wanted",
		"Update/can be taken back":                                            "Setup has no Wanted",
		"Update/whose answer was lost is repeated, or taken back":             "Setup has no Wanted",
		"Update/with a note in another spelling is OK":                        "Setup has no Wanted",
		"Update/of an absent VM is NotFound":                                  "the driver has no UpdateMachine",
		"Volumes/of types it does not know are left out":                      "the driver has no GetVolumeIDs",
		"Volumes/it knows are named":                                          "Setup has no Volumes",
		"Migration/fills the class, and is idempotent":                        "Setup has no Migration",
		"Arguments/a class of another provider is InvalidArgument":            blind,
		"Arguments/a spec that can't be decoded is Internal":                  blind,
		"Arguments/a spec that can't work is InvalidArgument":                 "Setup has no Invalid",
		"Arguments/a machine without a name is InvalidArgument":               blind,
		"Context/a canceled call ends":                                        blind,
		"Context/a call past its deadline ends":                               blind,
		"Context/a create is cut off by its deadline":                         blind,
		"Concurrent/creates of one name make one VM":                          blind,
		"Concurrent/creates of many names make as many VMs":                   blind,
		"Concurrent/deletes of one VM all end":                                blind,
		"LostAnswer/of a create: the next one adopts":                         blind,
		"LostAnswer/of a create: the VM can be deleted":                       blind,
		"LostAnswer/of a delete: the next one is OK":                          blind,
		"Context/a call under way ends":                                       "no call lasts long enough",
		"Faults/of a create: the next one adopts, and nothing is left behind": "Setup has no Faults",
		"Faults/of a delete: OK means that the VM is gone":                    "Setup has no Faults",
		"Faults/of a status: no VM is taken for gone":                         "the driver has no GetMachineStatus",
		"Faults/of a list: no VM is left out":                                 "the driver has no ListMachines",
		secondAdopts:                                                          "Setup has no Again",
		"Processes/creates of one name from two make one VM":                  "Setup has no Again",
		"LostAnswer/of an initialization: the next one is OK":                 "the driver has no InitializeMachine",
		"Secrets/without its secret no VM is gone":                            blind,
	}
	for _, o := range outcomes(t, bareSuite(func(*Setup, *Memory) {})) {
		if o.Failed || !strings.HasPrefix(o.Left, want[o.Check]) || o.Skipped != (want[o.Check] != "") {
			t.Errorf("%s: failed %t, reason %q, not %q: %s", o.Check, o.Failed, o.Left, want[o.Check], o.Text)
		}
	}
}

// With Setup.Count, the checks of creates and deletes are run without a list or a status.
func TestCountReplacesReads(t *testing.T) {
	for _, o := range outcomes(t, bareSuite(func(s *Setup, m *Memory) { s.Count = m.Count })) {
		if group, _, _ := strings.Cut(o.Check, "/"); !slices.Contains([]string{"Delete", "Context", "Concurrent"}, group) {
			continue
		}
		if o.Failed || o.Skipped && !lacksOptionalParts(o) {
			t.Errorf("%s: failed %t, reason %q: %s", o.Check, o.Failed, o.Left, o.Text)
		}
	}
}

// lacksOptionalParts reports whether a check was not run for something that a Memory or its Setup does not have.
func lacksOptionalParts(o conformance.Outcome) bool {
	return strings.HasPrefix(o.Left, "Setup has no") || strings.HasPrefix(o.Left, "no call lasts long enough")
}

// failsWith requires that checks of a suite fail, and with which messages.
func failsWith(t *testing.T, s Suite, fails map[string]string) {
	t.Helper()
	all := outcomes(t, s)
	for check, says := range fails {
		i := slices.IndexFunc(all, func(o conformance.Outcome) bool { return o.Check == check })
		if i < 0 || !all[i].Failed || !strings.Contains(all[i].Text, says) {
			t.Errorf("%s does not fail with %q; failing are %q", check, says, conformance.Failures(all))
		}
	}
}

// Bugs of a driver without list and status are found by Setup.Count, or from the answers themselves.
func TestBrokenBareDriversFail(t *testing.T) {
	createsNothing := func(s *Setup, m *Memory) {
		n := 0
		b := newBroken(m)
		b.create = func(_ context.Context, req *createRequest) (*createResponse, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			n++
			return &createResponse{ProviderID: fmt.Sprint("memory:///blue/", n), NodeName: req.Machine.Name}, nil
		}
		s.Driver = bare{memory: b}
	}
	failsWith(t, bareSuite(createsNothing), map[string]string{
		"Create/is idempotent by name":               "adopts the one that is there",
		"Concurrent/creates of one name make one VM": "CreateMachine answered VM",
	})
	failsWith(t, bareSuite(func(s *Setup, m *Memory) {
		createsNothing(s, m)
		s.Count = m.Count
	}), map[string]string{
		"Create/answers what the VM is called":              "0 VMs more than before, not 1",
		"Create/makes one VM a name":                        "0 VMs more than before, not 2",
		"Concurrent/creates of many names make as many VMs": "0 VMs more than before, not 8",
	})
	failsWith(t, bareSuite(func(s *Setup, m *Memory) {
		b := newBroken(m)
		b.remove = func(context.Context, *deleteRequest) (*deleteResponse, error) { return &deleteResponse{}, nil }
		s.Driver, s.Count = bare{memory: b}, m.Count
	}), map[string]string{
		"Delete/removes the VM, and is idempotent":            "2 VMs more than before, not 1",
		"Delete/finds the VM by name when no ID was recorded": "2 VMs more than before, not 1",
		"Concurrent/deletes of one VM all end":                "1 VMs more than before, not 0",
	})
}

// If no call shows the VMs, the suite at least compares the answers of creates with each other.
func TestAnswersOfADriverWithoutReads(t *testing.T) {
	answers := func(id func(req *createRequest, own string) string) Suite {
		return bareSuite(func(s *Setup, m *Memory) {
			b := newBroken(m)
			b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
				a, err := m.CreateMachine(ctx, req)
				if err == nil {
					a.ProviderID = id(req, a.ProviderID)
				}
				return a, err
			}
			s.Driver = bare{memory: b}
		})
	}
	failsWith(t, answers(func(*createRequest, string) string { return "memory:///blue/1" }), map[string]string{
		"Create/makes one VM a name":                        "were answered the same VM",
		"Concurrent/creates of many names make as many VMs": "8 machines have the VMs",
	})
	failsWith(t, answers(func(req *createRequest, own string) string {
		return own + req.Machine.Status.LastKnown
	}), map[string]string{"Create/goes on with and without its note": "is answered at first"})
}

// unlisted returns a suite for a driver without ListMachines, and without Setup.Count.
func unlisted(spoil func(*broken)) Suite {
	return Suite{New: func(*testing.T) Setup {
		m := NewMemory(options)
		b := newBroken(m)
		spoil(b)
		b.list = driver.Unimplemented{}.ListMachines
		s := setupOf(m, b)
		s.Count = nil
		return s
	}}
}

// Status alone shows enough to check everything but the list.
func TestStatusStandsInForTheList(t *testing.T) {
	for _, o := range outcomes(t, unlisted(func(*broken) {})) {
		if lacksOptionalParts(o) {
			continue
		}
		listing := o.Left == "the driver has no ListMachines"
		if o.Failed || o.Skipped != listing {
			t.Errorf("%s: failed %t, reason %q: %s", o.Check, o.Failed, o.Left, o.Text)
		}
	}
	for _, v := range []variant{
		{"doesn't delete", func(b *broken) {
			b.remove = func(context.Context, *deleteRequest) (*deleteResponse, error) { return &deleteResponse{}, nil }
		}, map[string]string{
			"Delete/removes the VM, and is idempotent":      "still exists",
			"LostAnswer/of a create: the VM can be deleted": "has the VM",
		}},
		{"deletes by name", deleteVariants[3].spoil, map[string]string{
			"Delete/with a provider ID deletes exactly that VM": "is gone",
		}},
		{"can't look", func(b *broken) {
			b.status = func(context.Context, *statusRequest) (*statusResponse, error) {
				return nil, codes.New(codes.PermissionDenied, "these credentials may not look")
			}
		}, map[string]string{"Create/is idempotent by name": "may not look"}},
		{"finds nothing and says OK", func(b *broken) {
			b.status = func(context.Context, *statusRequest) (*statusResponse, error) { return nil, nil }
		}, map[string]string{"Create/is idempotent by name": "OK without a response"}},
	} {
		t.Run(v.name, func(t *testing.T) { failsWith(t, unlisted(v.spoil), v.fails) })
	}
}

// VMs that become no nodes have no node name.
func TestWithoutNodeNames(t *testing.T) {
	for _, o := range outcomes(t, bareSuite(func(s *Setup, m *Memory) {
		b := newBroken(m)
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			a, err := m.CreateMachine(ctx, req)
			if err == nil {
				a.NodeName = ""
			}
			return a, err
		}
		s.Driver, s.Count, s.NoNodeNames = bare{memory: b}, m.Count, true
	})) {
		if o.Failed {
			t.Errorf("%s fails: %s", o.Check, o.Text)
		}
	}
}

// lagging is a provider whose list and lookups show the VMs as they were when
// it last settled.
type lagging struct {
	*Memory
	shown []MemoryVM
}

func (l *lagging) settle(context.Context) { l.shown = l.VMs() }

func (l *lagging) ListMachines(ctx context.Context, req *listRequest) (*listResponse, error) {
	a, err := l.Memory.ListMachines(ctx, req)
	if err == nil {
		clear(a.Machines)
		for _, vm := range l.shown {
			if vm.Cluster == spec(req.Class.ProviderSpec).Cluster {
				a.Machines[vm.ID] = vm.Name
			}
		}
	}
	return a, err
}

func (l *lagging) GetMachineStatus(ctx context.Context, req *statusRequest) (*statusResponse, error) {
	a, err := l.Memory.GetMachineStatus(ctx, req)
	if code := codes.Of(err); code != codes.OK && code != codes.NotFound {
		return a, err
	}
	for _, vm := range l.shown {
		id := req.Machine.Spec.ProviderID
		if vm.ID == id || id == "" && vm.Name == req.Machine.Name && vm.Cluster == spec(req.Class.ProviderSpec).Cluster {
			return &statusResponse{ProviderID: vm.ID, NodeName: vm.Name, Unhealthy: vm.Unhealthy}, nil
		}
	}
	return nil, codes.New(codes.NotFound, "there is no such VM")
}

// With Settle, a slow provider passes; without, it does not.
func TestSettle(t *testing.T) {
	for _, settles := range []bool{true, false} {
		all := outcomes(t, Suite{New: func(*testing.T) Setup {
			l := &lagging{Memory: NewMemory(MemoryOptions{})}
			s := setupOf(l.Memory, l)
			s.OtherCluster = nil // its VMs are looked up by ID, across clusters
			if settles {
				s.Settle = l.settle
			}
			return s
		}})
		if failed := conformance.Failures(all); settles != (len(failed) == 0) {
			t.Errorf("settles %t, failing are %q", settles, failed)
			for _, o := range all {
				if o.Failed {
					t.Logf("%s: %s", o.Check, o.Text)
				}
			}
		}
	}
}

func TestSetupIsUsed(t *testing.T) {
	var names []string
	settled := 0
	s := bareSuite(func(s *Setup, m *Memory) {
		s.Driver = m
		s.NewMachine = func(name string) *machine.Machine {
			names = append(names, name)
			return &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "mine", Name: name}}}
		}
		s.Settle = func(context.Context) { settled++ }
	})
	for _, o := range outcomes(t, s) {
		if o.Failed {
			t.Errorf("%s fails: %s", o.Check, o.Text)
		}
	}
	slices.Sort(names)
	if settled == 0 || len(names) == 0 || len(slices.Compact(slices.Clone(names))) < len(names)-1 {
		t.Errorf("settled %d times, machines %q", settled, names)
	}
}

func TestSetupWithoutADriver(t *testing.T) {
	for _, s := range []Setup{{}, {Driver: driver.Unimplemented{}}} {
		all := outcomes(t, Suite{New: func(*testing.T) Setup { return s }})
		if got := conformance.Failures(all); len(got) != len(all) {
			t.Errorf("only %q fail", got)
		}
	}
}
