package drivertest

import (
	"context"
	"testing"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
)

// Suite says how to make the driver under test.
type Suite struct {
	// New returns a driver and what the checks need beside it. Each check calls it once. The driver
	// may be the same each time, and its account shared with others. New closes what it opens
	// through t.Cleanup.
	New func(t *testing.T) Setup

	// Patience is how long a call may take: the deadline in its context. Zero
	// stands for 30 seconds.
	Patience time.Duration

	// Prompt is how long a call may go on after its context has ended. Zero
	// stands for 5 seconds.
	Prompt time.Duration
}

// Setup is a driver and the objects to test it with. Only Driver and Class are required. A nil
// field skips the checks that need it.
type Setup struct {
	Driver driver.Driver
	// Class is what VMs are created from. The suite also tests copies with an invalid provider and
	// provider spec. For a driver that ignores both, leave them empty.
	Class *machine.Class
	// Secret goes with every call. Its values must appear in no answer.
	Secret *machine.Secret
	// NewMachine returns a new machine of that name, a DNS label of up to 30
	// characters. Nil: a machine of Class with nothing else set.
	NewMachine func(name string) *machine.Machine

	// Different is a class of the same cluster as Class. A machine of Class can't adopt its VMs.
	Different *machine.Class
	// OtherCluster is for VMs of another cluster in the same account.
	OtherCluster *machine.Class
	// Invalid can be decoded, but no VM can be created from it.
	Invalid *machine.Class

	// NoNodeNames: VMs become no nodes, so they have no node name.
	NoNodeNames bool
	// NeedsInitialization: a VM of Class is UNINITIALIZED until InitializeMachine.
	NeedsInitialization bool
	// Wanted is a provider spec that UpdateMachine can change a VM of Class to.
	Wanted []byte
	// Volumes are those the driver knows, by the volume ID that it must answer.
	Volumes map[string]driver.Volume
	// Migration returns a request that can be fulfilled, a new one each time.
	Migration func() *driver.GenerateMachineClassForMigrationRequest

	// Sicken makes the VM with that provider ID unhealthy, for example by stopping it. Nil: the driver
	// does not report the health of VMs.
	Sicken func(ctx context.Context, providerID string)

	// Settle returns once every change made so far is visible in the provider's
	// answers. Nil: changes are visible at once.
	Settle func(ctx context.Context)
	// Count returns how many VMs there really are in the account, without using the driver. Only
	// its changes count.
	Count func() int
	// Leftovers names what is created along with VMs and exists now: disks, addresses, network
	// interfaces. It does not use the driver. Only what is new counts.
	Leftovers func() []string
	// Exhaust makes the provider refuse further VMs for lack of quota or capacity, until restore is
	// called.
	Exhaust func(ctx context.Context) (restore func())
	// Faults is the transport of the driver's HTTP client. It makes requests fail. Nil: what the driver
	// does with errors of its provider is not tested.
	Faults *Faults
	// Again returns a second driver for the same provider, as another process has it: it shares nothing
	// with Driver. It may share Faults.
	Again func() driver.Driver
	// PageSize is how many VMs the provider lists at a time. The suite makes more than twice as many, so
	// choose a small one for a provider of your own. Zero: the list is tried with 8 VMs.
	PageSize int
}

// check is one duty of a driver.
type check struct {
	name string
	run  func(*trial)
}

type group struct {
	name   string
	checks []check
}

// groups lists the checks in the order in which they are run. What others build on comes first: a
// create, then the calls that show the VMs, then what those calls have to show.
func groups() []group {
	return []group{
		{"Create", firstChecks},
		{"Spelling", spellingChecks},
		{"List", listChecks},
		{"Status", statusChecks},
		{"Create", createChecks},
		{"Delete", deleteChecks},
		{"Create", noteChecks},
		{"Status", absentChecks},
		{"List", goneChecks},
		{"Quota", quotaChecks},
		{"Initialize", initializeChecks},
		{"Health", healthChecks},
		{"Cluster", clusterChecks},
		{"Update", updateChecks},
		{"Volumes", volumeChecks},
		{"Migration", migrationChecks},
		{"Arguments", argumentChecks},
		{"Secrets", secretChecks},
		{"Context", contextChecks},
		{"Concurrent", concurrentChecks},
		{"LostAnswer", lostAnswerChecks},
		{"Faults", faultChecks},
		{"Processes", processChecks},
	}
}

// Run checks every duty of a driver, each in a subtest. In addition, a check fails if a call
// changes its request, panics, fails without a message, answers OK with nothing, shows a secret, or
// does not end in time.
//
// One cause is reported once: such a call is reported by the first check that makes it, and checks that
// build on a failed duty are not run. The log lists them.
//
// To lose an answer, the suite uses the driver's driver.FaultHook if there is one. Otherwise it replaces
// the answer by an error itself.
func Run(t *testing.T, s Suite) {
	t.Helper()
	conformance.Run(t, s.checks())
}

func (s Suite) checks() (all []conformance.Check) {
	for _, g := range groups() {
		for _, c := range g.checks {
			check := duties.Check(g.name, c.name)
			check.Start = func(t *testing.T, tb testing.TB) (*conformance.Trial, func()) {
				r := newTrial(tb, s, s.New(t))
				return r.Trial, func() { r.try(c) }
			}
			all = append(all, check)
		}
	}
	return all
}
