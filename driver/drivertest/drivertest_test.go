package drivertest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/object"
)

// options are those with which every check has something to do.
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
		Count: m.Count,
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
		Run(t, Suite{New: func(*testing.T) Setup { return setupOf(m, m) }})
		if left := m.VMs(); len(left) > 0 {
			t.Errorf("VMs left behind: %v", left)
		}
	})
}

// A driver and a setup that leave nothing out leave no check out.
func TestEveryCheckIsRun(t *testing.T) {
	for _, o := range outcomes(t, memorySuite(options)) {
		if o.skipped || o.Failed() {
			t.Errorf("%s: skipped %t (%s), failed %t: %s", o.check, o.skipped, o.reason, o.Failed(), o.text())
		}
	}
}

func variants() []variant {
	return slices.Concat(createVariants, argumentVariants, deleteVariants, statusVariants, listVariants,
		clusterVariants, extraVariants, contextVariants, lostAnswerVariants)
}

// Each broken driver is found out by the checks that should, and each check
// finds some broken driver.
func TestBrokenDriversFail(t *testing.T) {
	found := map[string]bool{}
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			all := outcomes(t, brokenSuite(v))
			for check, says := range v.fails {
				i := slices.IndexFunc(all, func(o outcome) bool { return o.check == check })
				switch {
				case i < 0:
					t.Errorf("there is no check %q", check)
				case !all[i].Failed():
					t.Errorf("%s does not fail; failing are %q", check, failures(all))
				case !strings.Contains(all[i].text(), says):
					t.Errorf("%s does not say %q but\n%s", check, says, all[i].text())
				default:
					found[check] = true
				}
			}
			if len(failures(all)) == len(all) {
				t.Errorf("every single check fails, which says nothing")
			}
		})
	}
	for _, o := range outcomes(t, memorySuite(options)) {
		if !found[o.check] {
			t.Errorf("no broken driver was made to fail %s", o.check)
		}
	}
}

func brokenSuite(v variant) Suite {
	return Suite{
		Prompt: 20 * time.Millisecond,
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

// Run itself is tried in a process of its own, where it may fail.
func TestRunFailsForABrokenDriver(t *testing.T) {
	if os.Getenv("DRIVERTEST_BROKEN") != "" {
		Run(t, brokenSuite(deleteVariants[3]))
		return
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunFailsForABrokenDriver$", "-test.v")
	command.Env = append(os.Environ(), "DRIVERTEST_BROKEN=1")
	out, err := command.CombinedOutput()
	if err == nil {
		t.Fatalf("a driver that deletes by name passes:\n%s", out)
	}
	for _, want := range []string{
		"--- FAIL: TestRunFailsForABrokenDriver/Delete/with_a_provider_ID_deletes_exactly_that_VM",
		"--- PASS: TestRunFailsForABrokenDriver/Create/is_idempotent_by_name",
		"a provider ID says which VM to delete, whatever the name",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output does not have %q:\n%s", want, out)
		}
	}
}

// bare is a driver without the optional calls.
type bare struct {
	driver.Unimplemented
	memory *Memory
}

func (b bare) CreateMachine(ctx context.Context, req *createRequest) (*createResponse, error) {
	return b.memory.CreateMachine(ctx, req)
}

func (b bare) DeleteMachine(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
	return b.memory.DeleteMachine(ctx, req)
}
