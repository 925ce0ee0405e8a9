package safetytest

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

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

// These draw values of fields, also unusual ones.
var (
	AnyWord = rapid.SampledFrom([]string{"", "a", "b", "a,b", "m~1", "{name}"})
	AnyTime = rapid.SampledFrom([]time.Time{{}, Epoch, Epoch.Add(-time.Hour), Epoch.Add(time.Hour), Epoch.Add(-40 * time.Second), time.Unix(math.MaxInt32, 0)})
	AnyCode = rapid.Map(rapid.IntRange(-1, 20), func(n int) codes.Code { return codes.Code(n) })
	AnyInt  = rapid.SampledFrom([]int32{0, 1, 2, 3, -1, math.MaxInt32, math.MinInt32})
)

// AnyMeta draws metadata.
func AnyMeta(t *rapid.T) object.Meta {
	m := object.Meta{
		Key: object.Key{Namespace: AnyWord.Draw(t, "namespace"), Name: AnyWord.Draw(t, "name")}, UID: AnyWord.Draw(t, "uid"),
		CreatedAt: AnyTime.Draw(t, "created"),
	}
	if rapid.Bool().Draw(t, "going") {
		m.DeletedAt = AnyTime.Draw(t, "deleted")
	}
	if rapid.Bool().Draw(t, "owned") {
		m.Owner = &object.Owner{UID: AnyWord.Draw(t, "owner"), Kind: rapid.SampledFrom([]string{"", machineset.OwnerKind, deployment.OwnerKind}).Draw(t, "kind of owner")}
	}
	keys := safety.DefaultPolicy().Keys
	if rapid.Bool().Draw(t, "annotated") {
		m.Labels = map[string]string{keys.Freeze: AnyWord.Draw(t, "label"), keys.NodeMachine: AnyWord.Draw(t, "node label")}
		m.Annotations = map[string]string{keys.Slots: "a~2026-03-01T09:00:00Z,b~x", keys.NotManaged: ""}
	}
	return m
}

// AnyMachine draws a machine, or nil.
func AnyMachine(t *rapid.T) *machine.Machine {
	if rapid.IntRange(0, 4).Draw(t, "nil") == 0 {
		return nil
	}
	m := &machine.Machine{Meta: AnyMeta(t)}
	m.Spec.ProviderID, m.Spec.NodeName, m.Spec.Class.Name = AnyWord.Draw(t, "id"), AnyWord.Draw(t, "node"), AnyWord.Draw(t, "class")
	m.Status.Phase = rapid.SampledFrom([]machine.Phase{"", "Running", "Unknown", "Failed", "Pending", "CrashLoopBackOff", "Terminating", "Nonsense"}).Draw(t, "phase")
	m.Status.Since, m.Status.ClockFrom = AnyTime.Draw(t, "since"), AnyTime.Draw(t, "clock")
	m.Status.LastOperation = machine.Operation{Kind: machine.OperationCreate, State: machine.StateFailed, Code: AnyCode.Draw(t, "code"), Time: AnyTime.Draw(t, "op")}
	return m
}

// AnySet draws a set, or nil.
func AnySet(t *rapid.T) *machineset.Set {
	if rapid.IntRange(0, 4).Draw(t, "no set") == 0 {
		return nil
	}
	s := &machineset.Set{Meta: AnyMeta(t)}
	s.Spec.Replicas = AnyInt.Draw(t, "set replicas")
	return s
}

// AnyDeployment draws a deployment, or nil.
func AnyDeployment(t *rapid.T) *deployment.Deployment {
	if rapid.IntRange(0, 2).Draw(t, "no deployment") == 0 {
		return nil
	}
	d := &deployment.Deployment{Meta: AnyMeta(t)}
	d.Spec.Replicas = AnyInt.Draw(t, "replicas")
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: AnyInt.Draw(t, "surge"), Percent: rapid.Bool().Draw(t, "percent")}
	d.Spec.Strategy.Kind = rapid.SampledFrom([]deployment.StrategyKind{"", "Recreate", "x"}).Draw(t, "kind")
	return d
}

// List draws up to four values with the function one.
func List[T any](t *rapid.T, name string, one func(*rapid.T) T) []T {
	return rapid.SliceOfN(rapid.Custom(one), 0, 4).Draw(t, name)
}

// AnyOutcome draws the outcome of a call, or nil if there was none.
func AnyOutcome(t *rapid.T) *machine.Outcome {
	if rapid.Bool().Draw(t, "unasked") {
		return nil
	}
	return &machine.Outcome{Code: AnyCode.Draw(t, "answer")}
}

// AnyPolicy draws a valid policy.
func AnyPolicy(t *rapid.T) *safety.Policy {
	p := safety.DefaultPolicy()
	p.Burst = rapid.IntRange(1, 3).Draw(t, "burst")
	p.Brake, p.BrakeShare = rapid.Int32Range(1, 3).Draw(t, "brake"), rapid.Int32Range(0, 100).Draw(t, "share")
	p.OrphansOfEmptyStore = rapid.Bool().Draw(t, "of an empty store")
	p.ZoneRule = rapid.Bool().Draw(t, "zones")
	p.Replacements = rollout.IntOrPercent{Value: max(0, AnyInt.Draw(t, "replacements")), Percent: rapid.Bool().Draw(t, "percent")}
	if rapid.Bool().Draw(t, "no keys") {
		p.Keys = safety.Keys{Slots: p.Keys.Slots}
	}
	return p
}

// AnySpent draws an earlier deletion that counts for the brake.
func AnySpent(t *rapid.T) safety.Spent {
	return safety.Spent{ID: AnyWord.Draw(t, "id"), At: AnyTime.Draw(t, "at")}
}

// ReadIf returns the freshness of an observation that was read live or from a cache.
func ReadIf(live bool) decision.Freshness {
	if !live {
		return decision.Freshness{}
	}
	return decision.Freshness{Began: Epoch}
}

// Printed returns the JSON of a value, with everything it points to.
func Printed(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(text)
}

// Entry is the decision function of a package below safety.
type Entry[O, R any] func(*O, *safety.Policy, time.Time) (R, error)

// OnePlan checks P11 and P27: for any observation and policy the decision returns a plan, the same one
// each time, and does not change its arguments. Without an observation or a policy, or with an invalid
// policy, it returns an error.
func OnePlan[O, R any](t *testing.T, decide Entry[O, R], draw func(*rapid.T) *O) {
	rapid.Check(t, func(t *rapid.T) {
		p, about := AnyPolicy(t), draw(t)
		before := Printed(about)
		first, err := decide(about, p, Epoch)
		if err != nil {
			require.ErrorIs(t, err, decision.ErrNoObservation)
			return
		}
		require.Equal(t, before, Printed(about), "the observation was changed")
		second, err := decide(about, p, Epoch)
		require.NoError(t, err)
		require.Equal(t, first, second)
		_, err = decide(about, nil, Epoch)
		require.ErrorIs(t, err, safety.ErrNoPolicy)
		_, err = decide(about, &safety.Policy{Brake: -1}, Epoch)
		var bad *object.FieldError
		require.ErrorAs(t, err, &bad)
		want, err := decide(about, safety.DefaultPolicy(), Epoch)
		require.NoError(t, err)
		got, err := decide(about, &safety.Policy{}, Epoch)
		require.NoError(t, err)
		require.Equal(t, want, got, "the zero policy means the default policy")
	})
	_, err := decide(nil, safety.DefaultPolicy(), Epoch)
	require.ErrorIs(t, err, decision.ErrNoObservation)
}

// Fleet returns n Running machines, and their VMs: machine names by provider ID.
func Fleet(n int) ([]*machine.Machine, map[string]string) {
	machines, vms := make([]*machine.Machine, n), make(map[string]string, n)
	for i := range machines {
		name, id := "web-bcdfg-"+strconv.Itoa(i), "provider:///zone-1/i-0123456789abcdef"+strconv.Itoa(i)
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}}
		m.Spec.ProviderID, m.Spec.NodeName, m.Status.Phase = id, "node-"+strconv.Itoa(i), machine.PhaseRunning
		machines[i], vms[id] = m, name
	}
	return machines, vms
}

// PausedKey is the annotation that pauses a machine.
const PausedKey = "millwright-go/paused"

// Noon is a time without a fraction of a second.
var Noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Member returns a machine in a phase. paused is the value of the annotation that pauses it.
func Member(name string, phase machine.Phase, paused string) *machine.Machine {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}, UID: name}}
	m.Annotations = map[string]string{PausedKey: paused}
	m.Spec.Class.Name, m.Spec.ProviderID, m.Status.Phase = "small", "p://"+name, phase
	return m
}
