package machineset_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// fleet returns a set with a number of replicas and n machines, in random order of age. Each machine has its
// own maps and shares the template's strings, as if the set had just created it. If decoded, it has its own
// strings, too, as if it was decoded from bytes.
func fleet(replicas int32, n int, decoded bool) *machineset.Observation {
	own := func(s string) string {
		if decoded {
			return strings.Clone(s)
		}
		return s
	}
	ownMap := func(m map[string]string) map[string]string {
		c := make(map[string]string, len(m))
		for k, v := range m {
			c[own(k)] = own(v)
		}
		return c
	}
	random := rand.New(rand.NewPCG(1, 2))
	set := newSet(replicas)
	set.Finalizers = []string{machineset.Finalizer}
	set.Generation = 1
	set.Instructions.Reservation = machineset.Reservation{Settled: int64(n), Reserved: int64(n), At: morning}
	o := &machineset.Observation{Set: set, Machines: make([]*machine.Machine, n)}
	for i, at := range random.Perm(n) {
		m := &machine.Machine{}
		m.Key = object.Key{Namespace: own(namespace), Name: set.MachineName(int64(i + 1))}
		m.UID = fmt.Sprintf("machine-%d", i)
		m.Labels = ownMap(set.Spec.Template.Labels)
		if i%10 == 0 {
			m.Annotations = map[string]string{"machinepriority.machine.sapcloud.io": strconv.Itoa(1 + random.IntN(3))}
		}
		m.Finalizers = []string{own(machine.Finalizer)}
		m.CreatedAt = morning.Add(time.Duration(at/10) * time.Second)
		m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: own(set.Name), UID: own(set.UID)}
		m.Spec = set.Spec.Template.Spec.Clone()
		m.Spec.NodeTemplate.Labels = ownMap(m.Spec.NodeTemplate.Labels)
		m.Spec.ProviderID, m.Spec.NodeName = fmt.Sprintf("vm-%d", i), fmt.Sprintf("node-%d", i)
		m.Status.Phase = machine.Phase(own(string(machine.PhaseRunning)))
		m.Status.Since = m.CreatedAt.Add(time.Minute)
		m.Status.LastOperation = machine.Operation{Kind: machine.OperationCreate, State: machine.OperationState(own("Successful"))}
		o.Machines[i] = m
	}
	return o
}

// settle brings the status of the observed set up to date.
func settle(tb testing.TB, o *machineset.Observation, now time.Time) {
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), now)
	write, ok := plan.Write.(*machineset.UpdateStatus)
	if err != nil || !ok {
		tb.Fatalf("no status to write: %v, %v", plan.Why, err)
	}
	o.Set = o.Set.Clone()
	o.Set.Status = write.Status
}

func benchmarkSettled(b *testing.B, n int) {
	o, policy, now := fleet(int32(n), n, false), machineset.DefaultPolicy(), morning.Add(time.Hour*9)
	settle(b, o, now)
	b.ReportAllocs()
	for b.Loop() {
		plan, err := machineset.Decide(o, policy, now)
		if err != nil || plan.Why.Reason != machineset.ReasonSettled {
			b.Fatal(plan.Why, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/machine")
}

func BenchmarkDecide1000(b *testing.B)   { benchmarkSettled(b, 1000) }
func BenchmarkDecide10000(b *testing.B)  { benchmarkSettled(b, 10000) }
func BenchmarkDecide100000(b *testing.B) { benchmarkSettled(b, 100000) }

func benchmarkDeletions(b *testing.B, decoded bool) {
	o, policy, now := fleet(9900, 10000, decoded), machineset.DefaultPolicy(), morning.Add(time.Hour)
	o.Read = decision.Freshness{Began: now}
	b.ReportAllocs()
	for b.Loop() {
		plan, err := machineset.Decide(o, policy, now)
		if err != nil || len(plan.Delete) != 100 {
			b.Fatal(plan.Why, err)
		}
	}
}

// BenchmarkDecideVictims10000: 100 of 10,000 machines are surplus, on a live read.
func BenchmarkDecideVictims10000(b *testing.B) { benchmarkDeletions(b, false) }

// BenchmarkDecideVictims10000Decoded: the same, but no two machines share a string, so that more memory is read.
func BenchmarkDecideVictims10000Decoded(b *testing.B) { benchmarkDeletions(b, true) }

// BenchmarkDecideCreate100: 100 of 1,000 machines are missing, and their names are reserved.
func BenchmarkDecideCreate100(b *testing.B) {
	o, policy, now := fleet(1000, 900, false), machineset.DefaultPolicy(), morning.Add(time.Second)
	o.Read = decision.Freshness{Began: now}
	o.Set.Instructions.Reservation.Reserved += 100
	b.ReportAllocs()
	for b.Loop() {
		plan, err := machineset.Decide(o, policy, now)
		if err != nil || len(plan.Create) != 100 {
			b.Fatal(plan.Why, err)
		}
	}
}
