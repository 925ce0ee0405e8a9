package simtest

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

// The long tests play hundreds of scenarios, in the code that the short ones run under the race
// detector.
//
//make:long-tests-without-race

// mistake says what is wrong with a driver. The empty one means nothing.
type mistake string

const (
	wrongName    mistake = "creates under a wrong name"
	falseDelete  mistake = "deletes nothing, and says OK"
	needsID      mistake = "deletes nothing without an ID, and says OK"
	nothingFound mistake = "every failed look-up is NOT_FOUND"
	shortList    mistake = "list misses VMs"
	createsAgain mistake = "a create that is repeated makes another VM"
	quotaCode    mistake = "a quota that is used up is UNAVAILABLE"
)

// faultyDriver wraps the world's provider, and adds a mistake. It declares no optional interfaces.
type faultyDriver struct {
	driver.Driver
	w       *sim.World
	mistake mistake
}

func withMistake(m mistake) func(*sim.World) driver.Driver {
	return func(w *sim.World) driver.Driver { return faultyDriver{w.Provider(), w, m} }
}

func (d faultyDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if d.mistake == wrongName {
		r := *req
		r.Machine = req.Machine.Clone()
		r.Machine.Name += "x"
		req = &r
	}
	if d.mistake == createsAgain {
		for _, vm := range d.w.Provider().VMs() {
			if vm.Name == req.Machine.Name {
				d.w.Provider().Add(vm)
				break
			}
		}
	}
	return d.Driver.CreateMachine(ctx, req)
}

func (d faultyDriver) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if d.mistake == falseDelete || d.mistake == needsID && req.Machine.Spec.ProviderID == "" {
		return &driver.DeleteMachineResponse{}, nil
	}
	return d.Driver.DeleteMachine(ctx, req)
}

func (d faultyDriver) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	out, err := d.Driver.GetMachineStatus(ctx, req)
	if d.mistake == nothingFound && err != nil {
		return nil, codes.New(codes.NotFound, "not found")
	}
	return out, err
}

func (d faultyDriver) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	out, err := d.Driver.ListMachines(ctx, req)
	if d.mistake == shortList && err == nil {
		for id := range out.Machines {
			if strings.HasSuffix(id, "3") {
				delete(out.Machines, id)
			}
		}
	}
	return out, err
}

// runReport returns the report that Run would fail with, or "".
func runReport(t *testing.T, o Options) string {
	t.Helper()
	o, err := o.complete()
	require.NoError(t, err)
	report, err := o.run(t.Name(), seedRange{n: uint64(o.Seeds)}, false)
	require.NoError(t, err)
	return report
}

// TestCorrectDriverPasses: a driver without a mistake passes with default settings, although it declares
// less than the world's own driver.
func TestCorrectDriverPasses(t *testing.T) {
	o := Options{Driver: withMistake("")}
	if testing.Short() {
		o.Seeds = 12
	}
	Run(t, o)
}

// TestMistakesAreFound: Run finds all mistakes with default settings. The story is short, and marks the call
// to blame.
func TestMistakesAreFound(t *testing.T) {
	for m, want := range map[mistake]struct{ rule, guilty string }{
		wrongName:    {"P14: a VM of machine by-handx lives, and its record is gone", "CreateMachine"},
		falseDelete:  {"answer of DeleteMachine: it says OK for machine", "DeleteMachine"},
		needsID:      {"answer of DeleteMachine: it says OK for machine", "DeleteMachine"},
		nothingFound: {"answer of GetMachineStatus: it says NotFound for machine", "GetMachineStatus"},
		shortList:    {"answer of ListMachines: VM memory:///blue/3 of machine", "CreateMachine"}, // the call that created the VM
		createsAgain: {"P13: two VMs live for machine", "CreateMachine"},
	} {
		t.Run(string(m), func(t *testing.T) {
			o := Options{Driver: withMistake(m)}
			if testing.Short() {
				o.Tries = 12
			}
			report := runReport(t, o)
			require.Contains(t, report, want.rule)
			require.LessOrEqual(t, strings.Count(report, "\n"), maxStory, report)
			require.Regexp(t, `\n> +\S+  driver: `+want.guilty+` \S+`, report)
			require.Equal(t, 2, strings.Count(report, "\n> "), "lines with a mark: the call and the legend: %s", report)
			require.NotContains(t, report, "deterministic")
		})
	}
}

// leakyDriver creates a disk for each machine, and does not delete it if there is no VM to delete.
type leakyDriver struct {
	driver.Driver
	disks map[string]bool
}

func (d leakyDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	d.disks[req.Machine.Name] = true
	return d.Driver.CreateMachine(ctx, req)
}

func (d leakyDriver) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	_, err := d.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: req.Machine, Class: req.Class, Secret: req.Secret})
	if err == nil {
		delete(d.disks, req.Machine.Name)
	}
	return d.Driver.DeleteMachine(ctx, req)
}

// TestWhatIsLeftIsNamed: the report names what Setup.Left returns in the end, and the last call about it.
func TestWhatIsLeftIsNamed(t *testing.T) {
	report := runReport(t, Options{Tries: 5, New: func(w *sim.World) Setup {
		disks := map[string]bool{}
		return Setup{
			Driver: func() driver.Driver { return leakyDriver{w.Provider(), disks} },
			Left: func() (left []string) {
				for name := range disks {
					left = append(left, "disk of machine "+name)
				}
				return left
			},
		}
	}})
	require.Regexp(t, `^simtest: seed \d+: left at the provider: (disk of machine \S+, )+48h0m0s after all is deleted\n`, report)
	require.NotContains(t, report, "deterministic", "the order of Setup.Left must not count")
	require.Regexp(t, `\nLast call: driver: \w+ \S+, .*, at `, report)
	require.Regexp(t, `\n> +\S+  driver: DeleteMachine`, report)
}

// TestQuota: while Setup.Exhaust has used the quota up, creates have to fail with RESOURCE_EXHAUSTED.
func TestQuota(t *testing.T) {
	for _, m := range []mistake{"", quotaCode} {
		o := Options{Seeds: 20, Tries: 3, New: func(w *sim.World) Setup {
			full := false
			refuse := func(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
				if call.Method == codes.CreateMachine && full {
					return codes.New(map[mistake]codes.Code{"": codes.ResourceExhausted, quotaCode: codes.Unavailable}[m], "no more VMs")
				}
				return next(ctx)
			}
			return Setup{
				Driver: func() driver.Driver { return driver.Intercept(w.Provider(), refuse) },
				Exhaust: func(context.Context) func() {
					full = true
					return func() { full = false }
				},
			}
		}}
		report := runReport(t, o)
		if m == "" {
			require.Empty(t, report)
			continue
		}
		require.Regexp(t, `answer of CreateMachine: it says Unavailable for machine \S+ while the quota is used up, not ResourceExhausted`, report)
		require.Regexp(t, `\n> +\S+  driver: CreateMachine \S+ -> Unavailable: no more VMs`, report)
	}
}

// TestPropertiesAreChecked: the properties of Options and of Setup are checked.
func TestPropertiesAreChecked(t *testing.T) {
	few := sim.Property{Name: "few", Check: func(w *sim.World) error {
		for _, vm := range w.Provider().VMs() {
			if strings.HasPrefix(vm.Name, "web") {
				return fmt.Errorf("VM %s is one too many", vm.ID)
			}
		}
		return nil
	}}
	all := runReport(t, Options{Driver: withMistake(""), Properties: []sim.Property{few}, Tries: 20})
	require.Contains(t, all, "few: VM memory:///blue/")
	require.Regexp(t, `\n> +\S+  driver: CreateMachine web`, all)
	own := runReport(t, Options{New: func(w *sim.World) Setup {
		return Setup{Driver: func() driver.Driver { return w.Provider() }, Properties: []sim.Property{few}}
	}})
	require.Contains(t, own, "few: VM memory:///blue/")
}

// TestNondeterminismIsReported: the report says if a driver or a property depends on more than the world.
func TestNondeterminismIsReported(t *testing.T) {
	var first *sim.World
	report := runReport(t, Options{Seeds: 1, Driver: func(w *sim.World) driver.Driver {
		if first == nil {
			first = w
		}
		if w == first {
			return faultyDriver{w.Provider(), w, wrongName}
		}
		return faultyDriver{w.Provider(), w, ""}
	}})
	require.Contains(t, report, "nothing is violated when it is played again")

	n := 0
	report = runReport(t, Options{Seeds: 1, Driver: withMistake(""), Properties: []sim.Property{{Name: "count", Check: func(*sim.World) error {
		n++
		return fmt.Errorf("no %d", n)
	}}}})
	require.Contains(t, report, "is not deterministic")
	require.Contains(t, report, "violation of count: no 2\n")
	require.Contains(t, report, "violation of count: no 3\n")
}

// TestReplay: the flag plays one seed, with the same result, and the report shows the whole story.
func TestReplay(t *testing.T) {
	require.NoError(t, flag.Set("simtest.seed", "3"))
	t.Cleanup(func() { require.NoError(t, flag.Set("simtest.seed", "")) })
	var mu sync.Mutex
	played := map[uint64]int{}
	o := Options{Driver: withMistake(""), Scenario: func(seed uint64) *sim.Scenario {
		mu.Lock()
		defer mu.Unlock()
		played[seed]++
		return scenario.Rush(seed)
	}}
	Run(t, o)
	require.Equal(t, map[uint64]int{3: 1}, played)

	o = Options{Driver: withMistake(falseDelete), Tries: 20}
	short := runReport(t, o)
	require.Contains(t, short, "To play it again: go test -run '^TestReplay$' -simtest.seed=0")
	require.Contains(t, short, "lines of others")
	o, err := o.complete()
	require.NoError(t, err)
	whole, err := o.run(t.Name(), seedRange{0, 1}, true)
	require.NoError(t, err)
	require.NotContains(t, whole, "lines of others")
	require.Equal(t, strings.SplitN(short, "\n", 2)[0], strings.SplitN(whole, "\n", 2)[0])
}

// TestInvalidOptions: the error names the invalid field.
func TestInvalidOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"simtest: Options.Driver or Options.New must be set":         {},
		"simtest: Options.Driver and Options.New exclude each other": {Driver: withMistake(""), New: func(*sim.World) Setup { return Setup{} }},
		"simtest: Options.Seeds must not be negative, but is -1":     {Driver: withMistake(""), Seeds: -1},
	} {
		_, err := o.complete()
		require.EqualError(t, err, want)
	}
}
