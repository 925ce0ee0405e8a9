package safety_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

var (
	anyWord = rapid.SampledFrom([]string{"", "a", "b", "a,b", "m~1", "{name}"})
	anyTime = rapid.SampledFrom([]time.Time{{}, epoch, epoch.Add(-time.Hour), epoch.Add(time.Hour), epoch.Add(-40 * time.Second), time.Unix(math.MaxInt32, 0)})
	anyCode = rapid.Map(rapid.IntRange(-1, 20), func(n int) codes.Code { return codes.Code(n) })
	anyInt  = rapid.SampledFrom([]int32{0, 1, 2, 3, -1, math.MaxInt32, math.MinInt32})
)

func anyMeta(t *rapid.T) object.Meta {
	m := object.Meta{
		Key: object.Key{Namespace: anyWord.Draw(t, "namespace"), Name: anyWord.Draw(t, "name")}, UID: anyWord.Draw(t, "uid"),
		CreatedAt: anyTime.Draw(t, "created"),
	}
	if rapid.Bool().Draw(t, "going") {
		m.DeletedAt = anyTime.Draw(t, "deleted")
	}
	if rapid.Bool().Draw(t, "owned") {
		m.Owner = &object.Owner{UID: anyWord.Draw(t, "owner"), Kind: rapid.SampledFrom([]string{"", machineset.OwnerKind, deployment.OwnerKind}).Draw(t, "kind of owner")}
	}
	keys := safety.DefaultPolicy().Keys
	if rapid.Bool().Draw(t, "annotated") {
		m.Labels = map[string]string{keys.Freeze: anyWord.Draw(t, "label"), keys.NodeMachine: anyWord.Draw(t, "node label")}
		m.Annotations = map[string]string{keys.Slots: "a~2026-03-01T09:00:00Z,b~x", keys.NotManaged: ""}
	}
	return m
}

func anyMachine(t *rapid.T) *machine.Machine {
	if rapid.IntRange(0, 4).Draw(t, "nil") == 0 {
		return nil
	}
	m := &machine.Machine{Meta: anyMeta(t)}
	m.Spec.ProviderID, m.Spec.NodeName, m.Spec.Class.Name = anyWord.Draw(t, "id"), anyWord.Draw(t, "node"), anyWord.Draw(t, "class")
	m.Status.Phase = rapid.SampledFrom([]machine.Phase{"", "Running", "Unknown", "Failed", "Pending", "CrashLoopBackOff", "Terminating", "Nonsense"}).Draw(t, "phase")
	m.Status.Since, m.Status.ClockFrom = anyTime.Draw(t, "since"), anyTime.Draw(t, "clock")
	m.Status.LastOperation = machine.Operation{Kind: machine.OperationCreate, State: machine.StateFailed, Code: anyCode.Draw(t, "code"), Time: anyTime.Draw(t, "op")}
	return m
}

func anySet(t *rapid.T) *machineset.Set {
	if rapid.IntRange(0, 4).Draw(t, "no set") == 0 {
		return nil
	}
	s := &machineset.Set{Meta: anyMeta(t)}
	s.Spec.Replicas = anyInt.Draw(t, "set replicas")
	return s
}

func anyDeployment(t *rapid.T) *deployment.Deployment {
	if rapid.IntRange(0, 2).Draw(t, "no deployment") == 0 {
		return nil
	}
	d := &deployment.Deployment{Meta: anyMeta(t)}
	d.Spec.Replicas = anyInt.Draw(t, "replicas")
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: anyInt.Draw(t, "surge"), Percent: rapid.Bool().Draw(t, "percent")}
	d.Spec.Strategy.Kind = rapid.SampledFrom([]deployment.StrategyKind{"", "Recreate", "x"}).Draw(t, "kind")
	return d
}

func list[T any](t *rapid.T, name string, one func(*rapid.T) T) []T {
	return rapid.SliceOfN(rapid.Custom(one), 0, 4).Draw(t, name)
}

func anyOutcome(t *rapid.T) *machine.Outcome {
	if rapid.Bool().Draw(t, "unasked") {
		return nil
	}
	return &machine.Outcome{Code: anyCode.Draw(t, "answer")}
}

func anyClass(t *rapid.T) safety.OrphanClass {
	c := safety.OrphanClass{
		Key: object.Key{Name: anyWord.Draw(t, "class")}, Asked: anyTime.Draw(t, "asked"), Code: anyCode.Draw(t, "code"),
		Failures: int(anyInt.Draw(t, "failures")), Listed: int(anyInt.Draw(t, "listed")),
	}
	if rapid.Bool().Draw(t, "listed") {
		c.Listing = &safety.Listing{Asked: anyTime.Draw(t, "from"), Answered: anyTime.Draw(t, "to"), VMs: map[string]string{}}
		for range rapid.IntRange(0, 3).Draw(t, "vms") {
			c.Listing.VMs[anyWord.Draw(t, "vm")] = anyWord.Draw(t, "of")
		}
	}
	return c
}

// decisions draws one of each observation and returns the six decisions about
// them, each with what it is made from.
func decisions(t *rapid.T, p *safety.Policy) []func() (any, any, error) {
	machines := list(t, "machines", anyMachine)
	orphans := &safety.OrphanObservation{
		Classes: list(t, "classes", anyClass), Machines: machines, Read: decision.Freshness{Began: anyTime.Draw(t, "live")},
		NoCluster: rapid.Bool().Draw(t, "no cluster"),
		Unlisted: list(t, "unlisted", func(t *rapid.T) safety.Unlisted {
			return safety.Unlisted{Machine: object.Key{Name: anyWord.Draw(t, "name")}, UID: anyWord.Draw(t, "uid"), Class: object.Key{Name: anyWord.Draw(t, "class")}, ProviderID: anyWord.Draw(t, "id"), Since: anyTime.Draw(t, "since"), Missing: anyTime.Draw(t, "missing")}
		}),
		Sightings: list(t, "sightings", func(t *rapid.T) safety.Sighting {
			return safety.Sighting{Class: object.Key{Name: anyWord.Draw(t, "class")}, ProviderID: anyWord.Draw(t, "id"), Name: anyWord.Draw(t, "name"), Since: anyTime.Draw(t, "since")}
		}),
		Tries: list(t, "tries", func(t *rapid.T) safety.Try {
			return safety.Try{ProviderID: anyWord.Draw(t, "id"), At: anyTime.Draw(t, "at"), Code: anyCode.Draw(t, "code"), Failures: int(anyInt.Draw(t, "n"))}
		}),
		Hints: list(t, "hints", func(t *rapid.T) safety.Hint {
			return safety.Hint{Class: object.Key{Name: anyWord.Draw(t, "class")}, At: anyTime.Draw(t, "at"), Several: anyWord.Draw(t, "of")}
		}),
		Spent: list(t, "spent", func(t *rapid.T) safety.Spent {
			return safety.Spent{ID: anyWord.Draw(t, "id"), At: anyTime.Draw(t, "at")}
		}),
		Owners: int(anyInt.Draw(t, "owners")), Began: anyTime.Draw(t, "began"),
		Frozen: rapid.IntRange(0, 9).Draw(t, "frozen") == 0,
	}
	children := list(t, "sets", func(t *rapid.T) deployment.Children {
		return deployment.Children{Set: anySet(t), Machines: machines}
	})
	overshoot := &safety.OvershootObservation{Deployment: anyDeployment(t), Sets: children}
	reach := &safety.ReachObservation{
		Reach: safety.Reach{
			Stage: safety.ReachStage(rapid.IntRange(-1, 6).Draw(t, "stage")), Checked: anyTime.Draw(t, "checked"),
			From: anyTime.Draw(t, "from"), Until: anyTime.Draw(t, "until"), Control: safety.Side{Up: rapid.Bool().Draw(t, "up"), DownSince: anyTime.Draw(t, "down")},
		},
		NoTarget: rapid.Bool().Draw(t, "no target"), Control: anyOutcome(t), Target: anyOutcome(t), Machines: machines,
	}
	grant := &safety.GrantObservation{
		Machine: anyMachine(t), Deployment: anyDeployment(t), Set: anySet(t), Fleet: machines,
		Read: readIf(rapid.Bool().Draw(t, "grant live")), Taken: rapid.Bool().Draw(t, "taken"), Zones: map[string]string{"a": "z"},
	}
	nodes := &safety.NodesObservation{
		Nodes: list(t, "nodes", func(t *rapid.T) *machine.Node {
			return rapid.SampledFrom([]*machine.Node{nil, {Meta: anyMeta(t), ProviderID: anyWord.Draw(t, "id")}}).Draw(t, "node")
		}),
		Machines: machines, Read: readIf(rapid.Bool().Draw(t, "nodes live")),
	}
	ownerless := &safety.OwnerlessObservation{
		Machines: machines, Sets: list(t, "lone sets", anySet), Deployments: list(t, "deployments", anyDeployment),
		NoDeployments: rapid.Bool().Draw(t, "no deployments"), Read: decision.Freshness{Began: anyTime.Draw(t, "owners live")}, Looked: anyTime.Draw(t, "looked"),
		Sightings: list(t, "bereft", func(t *rapid.T) safety.Bereft {
			return safety.Bereft{UID: anyWord.Draw(t, "uid"), Owner: anyWord.Draw(t, "of"), Since: anyTime.Draw(t, "since")}
		}),
		Spent: orphans.Spent, Began: orphans.Began, Frozen: orphans.Frozen,
	}
	return []func() (any, any, error){
		func() (any, any, error) {
			plan, err := safety.DecideOwnerless(ownerless, p, epoch)
			return ownerless, plan, err
		},
		func() (any, any, error) {
			plan, err := safety.DecideOrphans(orphans, p, epoch)
			return orphans, plan, err
		},
		func() (any, any, error) {
			plan, err := safety.DecideOvershoot(overshoot, p, epoch)
			return overshoot, plan, err
		},
		func() (any, any, error) {
			plan, err := safety.DecideReachability(reach, p, epoch)
			return reach, plan, err
		},
		func() (any, any, error) { plan, err := safety.DecideGrant(grant, p, epoch); return grant, plan, err },
		func() (any, any, error) { plan, err := safety.DecideNodes(nodes, p, epoch); return nodes, plan, err },
	}
}

// P11, P27: for any state of storage and any arguments, each decision has a plan, the same one each
// time, and leaves its arguments alone.
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := safety.DefaultPolicy()
		p.Burst = rapid.IntRange(1, 3).Draw(t, "burst")
		p.Brake, p.BrakeShare = rapid.Int32Range(1, 3).Draw(t, "brake"), rapid.Int32Range(0, 100).Draw(t, "share")
		p.OrphansOfEmptyStore = rapid.Bool().Draw(t, "of an empty store")
		p.ZoneRule = rapid.Bool().Draw(t, "zones")
		p.Replacements = rollout.IntOrPercent{Value: max(0, anyInt.Draw(t, "replacements")), Percent: rapid.Bool().Draw(t, "percent")}
		if rapid.Bool().Draw(t, "no keys") {
			p.Keys = safety.Keys{Slots: p.Keys.Slots}
		}
		for _, decide := range decisions(t, p) {
			about, first, err := decide()
			if err != nil {
				require.ErrorIs(t, err, safety.ErrNoObservation)
				continue
			}
			before := printed(about)
			_, second, err := decide()
			require.NoError(t, err)
			require.Equal(t, first, second)
			require.Equal(t, before, printed(about), "the observation was changed")
		}
	})
}

func TestPoliciesOutOfRange(t *testing.T) {
	require.NoError(t, safety.DefaultPolicy().Validate())
	for field, change := range map[string]func(*safety.Policy){
		"policy.orphanPeriod": func(p *safety.Policy) { p.OrphanPeriod = time.Second },
		"policy.orphanGap":    func(p *safety.Policy) { p.OrphanGap = 0 },
		"policy.orphanSoon":   func(p *safety.Policy) { p.OrphanSoon = -1 },
		"policy.ownerPeriod":  func(p *safety.Policy) { p.OwnerPeriod = time.Second },
		"policy.ownerGap":     func(p *safety.Policy) { p.OwnerGap = 0 },
		"policy.checkPeriod":  func(p *safety.Policy) { p.CheckPeriod = 0 },
		"policy.checkDown":    func(p *safety.Policy) { p.CheckDown = time.Hour },
		"policy.downTimeout":  func(p *safety.Policy) { p.DownTimeout = 0 },
		"policy.settleTime":   func(p *safety.Policy) { p.SettleTime = -1 },
		"policy.grantUse":     func(p *safety.Policy) { p.GrantUse = 0 },
		"policy.grantFlight":  func(p *safety.Policy) { p.GrantFlight = 0 },
		"policy.nodeAge":      func(p *safety.Policy) { p.NodeAge = 0 },
		"policy.nodePeriod":   func(p *safety.Policy) { p.NodePeriod = 0 },
		"policy.brake":        func(p *safety.Policy) { p.Brake = 0 },
		"policy.brakeShare":   func(p *safety.Policy) { p.BrakeShare = 101 },
		"policy.paceBase":     func(p *safety.Policy) { p.PaceBase = time.Second - 1 },
		"policy.paceMax":      func(p *safety.Policy) { p.PaceMax = time.Second },
		"policy.paceTurn":     func(p *safety.Policy) { p.PaceTurn = 0 },
		"policy.safetyUp":     func(p *safety.Policy) { p.SafetyUp = 0 },
		"policy.safetyDown":   func(p *safety.Policy) { p.SafetyDown = 0 },
		"policy.replacements": func(p *safety.Policy) { p.Replacements.Value = -1 },
		"policy.burst":        func(p *safety.Policy) { p.Burst = 0 },
		"policy.keys.slots":   func(p *safety.Policy) { p.Keys.Slots = "" },
	} {
		p := safety.DefaultPolicy()
		change(p)
		_, err := safety.DecideNodes(&safety.NodesObservation{}, p, epoch)
		var bad *object.FieldError
		require.ErrorAs(t, err, &bad, field)
		assert.Equal(t, field, bad.Field)
	}
	_, err := safety.DecideNodes(&safety.NodesObservation{}, nil, epoch)
	require.ErrorIs(t, err, safety.ErrNoPolicy)
	_, err = safety.DecideOrphans(nil, safety.DefaultPolicy(), epoch)
	require.ErrorIs(t, err, safety.ErrNoObservation)
	_, err = safety.DecideOvershoot(nil, safety.DefaultPolicy(), epoch)
	require.ErrorIs(t, err, safety.ErrNoObservation)
	_, err = safety.DecideGrant(&safety.GrantObservation{}, safety.DefaultPolicy(), epoch)
	require.ErrorIs(t, err, safety.ErrNoObservation)
}

// readIf is how an observation was read: live or from caches.
func readIf(live bool) decision.Freshness {
	if !live {
		return decision.Freshness{}
	}
	return decision.Freshness{Began: epoch}
}
