package drivertest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/object"
)

// options make VMs need a secret and an initialization, so that no check is skipped.
var options = MemoryOptions{Token: "a-token-of-some-length", NeedsInitialization: true}

func setupOf(m *Memory, d driver.Driver) Setup {
	key := func(name string) object.Key { return object.Key{Namespace: "fleet", Name: name} }
	return Setup{
		Driver:              d,
		Class:               m.Class(key("small"), MemorySpec{Cluster: "blue", Size: "small"}),
		Secret:              m.Secret(key("boot")),
		Different:           m.Class(key("large"), MemorySpec{Cluster: "blue", Size: "large"}),
		OtherCluster:        m.Class(key("green"), MemorySpec{Cluster: "green", Size: "small"}),
		Invalid:             m.Class(key("none"), MemorySpec{Cluster: "blue"}),
		NeedsInitialization: m.options.NeedsInitialization,
		Wanted:              MemorySpec{Cluster: "blue", Size: "small", Tags: map[string]string{"cost": "42"}}.Encode(),
		Volumes:             map[string]driver.Volume{"disk-1": {Name: "pv-1", Type: MemoryVolumes, Handle: "disk-1"}},
		Migration: func() *migrateRequest {
			blank := m.Class(key("old"), MemorySpec{})
			blank.Provider, blank.ProviderSpec = "", nil
			return &migrateRequest{ProviderSpecificClass: MemorySpec{Cluster: "blue", Size: "small"}, Class: blank}
		},
		Sicken: func(_ context.Context, id string) { m.SetUnhealthy(id, "stopped") },
		Count:  m.Count,
	}
}

func memorySuite(o MemoryOptions) Suite {
	return Suite{New: func(*testing.T) Setup {
		m := NewMemory(o)
		return setupOf(m, m)
	}}
}

func TestMemory(t *testing.T) {
	t.Run("with everything", func(t *testing.T) { Run(t, memorySuite(options)) })
	t.Run("with nothing", func(t *testing.T) { Run(t, memorySuite(MemoryOptions{})) })
	t.Run("shared", func(t *testing.T) {
		m := NewMemory(options)
		m.Add(MemoryVM{Name: "somebody's", Cluster: "blue", Size: "huge"})
		Run(t, Suite{New: func(*testing.T) Setup { return setupOf(m, m) }})
		if left := m.VMs(); len(left) != 1 || left[0].Name != "somebody's" {
			t.Errorf("VMs left behind: %v", left)
		}
	})
}

// Each check is run by at least one of two full setups: one in memory, one that makes HTTP requests.
func TestEveryCheckIsRun(t *testing.T) {
	run := map[string]bool{}
	for _, s := range []Suite{memorySuite(options), restSuite("")} {
		for _, o := range outcomes(t, s) {
			run[o.Check] = run[o.Check] || !o.Skipped
			if o.Failed {
				t.Errorf("%s fails: %s", o.Check, o.Text)
			}
		}
	}
	for check := range run {
		if !run[check] {
			t.Errorf("%s is skipped", check)
		}
	}
}

func variants() []variant {
	return slices.Concat(healthVariants, createVariants, argumentVariants, deleteVariants, statusVariants, listVariants,
		clusterVariants, extraVariants, contextVariants, lostAnswerVariants)
}

// The expected checks find each broken driver, and each check finds some broken driver.
// Invariants: P48
func TestBrokenDriversFail(t *testing.T) {
	found := map[string]bool{}
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			conformance.Judge(t, outcomes(t, brokenSuite(v)), v.fails, found)
		})
	}
	for _, want := range restBugs { // see TestOneBugFailsOneCheck
		found[want[0]] = true
	}
	found[everyPage], found[createsFail] = true, true // see TestPagesOfManyVMs, TestLeakFoundByFaults
	for _, c := range (Suite{}).checks() {
		if title := c.Group + "/" + c.Name; !found[title] {
			t.Errorf("no broken driver was made to fail %s", title)
		}
	}
}

func brokenSuite(v variant) Suite {
	return Suite{
		Prompt: conformance.PromptFor(v.fails),
		New: func(t *testing.T) Setup {
			m := NewMemory(options)
			b := newBroken(m)
			end := make(chan struct{})
			b.end = end
			t.Cleanup(func() { close(end) })
			v.spoil(b)
			return setupOf(m, b)
		},
	}
}

// Run itself is tested in child processes, where it may fail.
func TestRun(t *testing.T) {
	suites := map[string]Suite{
		"broken": brokenSuite(deleteVariants[3]),
		"bare":   bareSuite(func(*Setup, *Memory) {}),
	}
	if s, ok := suites[os.Getenv("DRIVERTEST_SUITE")]; ok {
		Run(t, s)
		return
	}
	for name, c := range map[string]struct {
		passes bool
		wants  []string
	}{
		"broken": {false, []string{
			"--- FAIL: TestRun/Delete/with_a_provider_ID_deletes_exactly_that_VM",
			"--- PASS: TestRun/Create/is_idempotent_by_name",
			"a provider ID says which VM to delete, regardless of the name",
		}},
		"bare": {true, []string{
			"--- SKIP: TestRun/Create/refuses_a_VM_that_differs",
			"--- PASS: TestRun/Delete/of_an_absent_VM_is_OK",
			"4 of 69 duties checked; not checked, or not wholly:",
			"because Setup has no Different:", "Create/refuses a VM that differs\n",
		}},
	} {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRun$", "-test.v")
		command.Env = append(os.Environ(), "DRIVERTEST_SUITE="+name)
		out, err := command.CombinedOutput()
		if (err == nil) != c.passes {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.wants {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: the output does not have %q:\n%s", name, want, out)
			}
		}
	}
}

// bare is a driver without the optional calls.
type bare struct {
	driver.Unimplemented
	memory driver.Driver
}

func (b bare) CreateMachine(ctx context.Context, req *createRequest) (*createResponse, error) {
	return b.memory.CreateMachine(ctx, req)
}

func (b bare) DeleteMachine(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
	return b.memory.DeleteMachine(ctx, req)
}

func outcomes(t *testing.T, s Suite) []conformance.Outcome {
	return conformance.Outcomes(t, s.checks())
}

// broken is a Memory with some calls done differently.
type broken struct {
	*Memory
	// around is called around each call.
	around     func(ctx context.Context, call codes.Call, next func(context.Context) error) error
	create     func(context.Context, *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error)
	initialize func(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error)
	remove     func(context.Context, *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error)
	status     func(context.Context, *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error)
	list       func(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error)
	volumes    func(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error)
	update     func(context.Context, *driver.UpdateMachineRequest) (*driver.UpdateMachineResponse, error)
	migrate    func(
		context.Context, *driver.GenerateMachineClassForMigrationRequest,
	) (*driver.GenerateMachineClassForMigrationResponse, error)
	failAfter func(codes.Call, error)

	asked sync.Map
	end   <-chan struct{} // of the test
}

func newBroken(m *Memory) *broken {
	return &broken{
		Memory: m,
		around: func(ctx context.Context, _ codes.Call, next func(context.Context) error) error { return next(ctx) },
		create: m.CreateMachine, initialize: m.InitializeMachine, remove: m.DeleteMachine, status: m.GetMachineStatus,
		list: m.ListMachines, volumes: m.GetVolumeIDs, update: m.UpdateMachine,
		migrate: m.GenerateMachineClassForMigration, failAfter: m.FailAfter,
	}
}

func through[Q, R any](
	ctx context.Context, b *broken, call codes.Call, req *Q, do func(context.Context, *Q) (*R, error),
) (response *R, err error) {
	err = b.around(ctx, call, func(ctx context.Context) (err error) {
		response, err = do(ctx, req)
		return err
	})
	return response, err
}

func (b *broken) CreateMachine(
	ctx context.Context, req *driver.CreateMachineRequest,
) (*driver.CreateMachineResponse, error) {
	return through(ctx, b, codes.CreateMachine, req, b.create)
}

func (b *broken) InitializeMachine(
	ctx context.Context, req *driver.InitializeMachineRequest,
) (*driver.InitializeMachineResponse, error) {
	return through(ctx, b, codes.InitializeMachine, req, b.initialize)
}

func (b *broken) DeleteMachine(
	ctx context.Context, req *driver.DeleteMachineRequest,
) (*driver.DeleteMachineResponse, error) {
	return through(ctx, b, codes.DeleteMachine, req, b.remove)
}

func (b *broken) GetMachineStatus(
	ctx context.Context, req *driver.GetMachineStatusRequest,
) (*driver.GetMachineStatusResponse, error) {
	return through(ctx, b, codes.GetMachineStatus, req, b.status)
}

func (b *broken) ListMachines(
	ctx context.Context, req *driver.ListMachinesRequest,
) (*driver.ListMachinesResponse, error) {
	return through(ctx, b, codes.ListMachines, req, b.list)
}

func (b *broken) GetVolumeIDs(
	ctx context.Context, req *driver.GetVolumeIDsRequest,
) (*driver.GetVolumeIDsResponse, error) {
	return through(ctx, b, codes.GetVolumeIDs, req, b.volumes)
}

func (b *broken) GenerateMachineClassForMigration(
	ctx context.Context, req *driver.GenerateMachineClassForMigrationRequest,
) (*driver.GenerateMachineClassForMigrationResponse, error) {
	return through(ctx, b, codes.GenerateMachineClassForMigration, req, b.migrate)
}

func (b *broken) UpdateMachine(
	ctx context.Context, req *driver.UpdateMachineRequest,
) (*driver.UpdateMachineResponse, error) {
	return through(ctx, b, codes.UpdateMachine, req, b.update)
}

func (b *broken) FailAfter(call codes.Call, err error) { b.failAfter(call, err) }

// spec decodes a provider spec, or returns a zero one.
func spec(text []byte) MemorySpec {
	s, _ := decodeSpec(text)
	return s
}

// existing returns the VMs of a name in a cluster.
func (b *broken) existing(name string, s MemorySpec) []MemoryVM {
	var found []MemoryVM
	for _, vm := range b.VMs() {
		if vm.Name == name && vm.Cluster == s.Cluster {
			found = append(found, vm)
		}
	}
	return found
}

// seen reports whether it was called with that key before.
func (b *broken) seen(id string) bool {
	_, loaded := b.asked.LoadOrStore(id, true)
	return loaded
}
