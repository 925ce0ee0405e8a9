package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// hotChaos is a chaos in which the class's tags change again and again, and caches show old classes.
type hotChaos struct {
	*chaos
	classes []*machine.Class // all versions of the class
}

var anyTags = rapid.Custom(func(t *rapid.T) string {
	var tags []string
	for _, key := range []string{"a", "b", "c"} {
		if value := rapid.IntRange(0, 2).Draw(t, "tag "+key); value > 0 {
			tags = append(tags, key, fmt.Sprint(value))
		}
	}
	return spec("s", tags...)
})

func newHotChaos(t *rapid.T) *hotChaos {
	c := &hotChaos{chaos: newChaos(t)}
	c.fields = []string{"tags"}
	c.changeClass(anyTags.Draw(t, "first"))
	c.cachedClass = func() *machine.Class {
		n := len(c.classes)
		if !c.stormy {
			return c.classes[n-1]
		}
		return c.classes[max(0, n-1-rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "class lag"))]
	}
	c.updateTurn = func(*machine.Machine) *machine.UpdateTurn {
		return &machine.UpdateTurn{Allowed: !c.stormy || rapid.IntRange(0, 5).Draw(t, "permit") > 0}
	}
	return c
}

func (c *hotChaos) changeClass(spec string) {
	c.setClassSpec(spec)
	c.classes = append(c.classes, c.class)
}

// storm runs passes with changes of the class, kills and time between them, and then stops the faults.
func (c *hotChaos) storm(t *rapid.T, steps int) {
	for range rapid.IntRange(0, steps).Draw(t, "steps") {
		switch rapid.IntRange(0, 3).Draw(t, "event") {
		case 0:
			c.changeClass(anyTags.Draw(t, "tags"))
		case 1:
			c.killAt, c.killAfter = c.calls+rapid.IntRange(1, 6).Draw(t, "kill"), rapid.Bool().Draw(t, "after")
		default:
			c.advance(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 5 * time.Minute}).Draw(t, "time"))
		}
		_, _, err := c.shell.reconcile()
		if errors.Is(err, errKilled) {
			c.restart()
		} else if !errors.Is(err, errConflict) {
			require.NoError(t, err)
		}
	}
	c.stormy, c.killAt = false, 0
}

// TestP26TagsEndAsTheClassSays: the tags of a class change while anything fails. In the end the VM has the tags
// of the class and no others of ours, the status records that, and the VM was not replaced (P4, P13, P26). Then
// nothing more is written or called (P28).
// Invariants: P26 P28
func TestP26TagsEndAsTheClassSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newHotChaos(t)
		c.storm(t, 25)
		c.restart()
		c.shell.settle(4 * bound)
		m := c.store.live()
		if m.Status.Phase != machine.PhaseRunning && m.Status.Phase != machine.PhaseAvailable {
			return // its creation has failed, or its node is gone
		}
		require.Equal(t, machine.SplitSpec(c.class, c.fields), m.Status.VMSpec)
		var vm *vm
		for _, v := range c.provider.vms {
			if v.id == m.Spec.ProviderID {
				vm = v
			}
		}
		require.NotNil(t, vm)
		tags, _ := tagsOf(c.class.ProviderSpec)
		require.Equal(t, len(tags), len(vm.tags), "%v %v", tags, vm.tags)
		for k, v := range tags {
			require.Equal(t, v, vm.tags[k])
		}
		require.NotContains(t, m.Annotations, c.policy.Keys.Replace)
		writes, calls := c.store.writes, c.provider.calls[codes.UpdateMachine]
		c.advance(time.Hour)
		_, _, err := c.shell.reconcile()
		require.NoError(t, err)
		require.Equal(t, writes, c.store.writes, "P28: a settled machine was written")
		require.Equal(t, calls, c.provider.calls[codes.UpdateMachine], "P28: an updated VM was updated again")
	})
}

// hotWorld returns a world with a running machine whose class has new tags.
func hotWorld(t *testing.T, change ...func(*machine.Machine)) (*world, *shell) {
	w := newWorld(t)
	w.fields = []string{"tags"}
	w.setClassSpec(spec("s", "team", "a"))
	w.createMachine(change...)
	s := &shell{w: w}
	s.settle(bound)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	w.setClassSpec(spec("s", "team", "b"))
	return w, s
}

// failUpdates makes each UpdateMachine fail with this code.
func (w *world) failUpdates(code codes.Code) {
	w.provider.faults = func(call codes.Call) fault {
		if call == codes.UpdateMachine {
			return fault{code: code}
		}
		return fault{}
	}
}

// After UNIMPLEMENTED, UpdateMachine is not called again until something changes; then it is, at once.
func TestUnimplementedUpdateIsNotRepeated(t *testing.T) {
	w, s := hotWorld(t)
	w.failUpdates(codes.Unimplemented)
	for range 5 {
		w.runPass(s)
		w.advance(24 * time.Hour)
	}
	require.Equal(t, 1, w.provider.calls[codes.UpdateMachine])
	w.secret = "v2"
	w.runPass(s)
	require.Equal(t, 2, w.provider.calls[codes.UpdateMachine])
}

// After NOT_FOUND, UpdateMachine is called again when the health timeout would have passed, or when something
// changes.
func TestUpdateIsRetriedAfterNotFound(t *testing.T) {
	w, s := hotWorld(t)
	w.failUpdates(codes.NotFound)
	w.runPass(s)
	w.advance(w.policy.HealthTimeout - time.Second)
	w.runPass(s)
	require.Equal(t, 1, w.provider.calls[codes.UpdateMachine])
	w.secret = "v2"
	w.runPass(s)
	require.Equal(t, 2, w.provider.calls[codes.UpdateMachine])
	w.provider.faults = nil
	w.advance(w.policy.HealthTimeout + 2*time.Second)
	w.runPass(s)
	require.Equal(t, 3, w.provider.calls[codes.UpdateMachine])
	require.Empty(t, w.store.live().Status.VMSpec.Begun)
}

// An update takes two writes of the machine. The second one includes the driver's LastKnown.
func TestAnUpdateTakesTwoWrites(t *testing.T) {
	w, s := hotWorld(t)
	w.provider.note = "tagged"
	before := w.store.writes
	w.runPass(s)
	m := w.store.live()
	assert.Equal(t, before+2, w.store.writes)
	assert.Equal(t, "tagged", m.Status.LastKnown)
	assert.Equal(t, machine.Operation{
		Kind: machine.OperationUpdate, State: machine.StateSuccessful, Stage: machine.StageUpdateVM,
		Message: "the VM is as class small says", Time: w.store.seconds(),
	}, m.Status.LastOperation)
}

// If the driver declares no fields, no spec is recorded and nothing is updated.
func TestNoSpecIsRecordedWithoutDeclaredFields(t *testing.T) {
	w := newWorld(t)
	w.setClassSpec(spec("s", "team", "a"))
	w.createMachine()
	s := &shell{w: w}
	s.settle(bound)
	require.Equal(t, machine.VMSpec{}, w.store.live().Status.VMSpec)
	writes := w.store.writes
	w.setClassSpec(spec("s", "team", "b"))
	w.runPass(s)
	require.Equal(t, writes, w.store.writes)
	require.Zero(t, w.provider.calls[codes.UpdateMachine])
}

// The spec of a creation is recorded in a write that is made anyway.
func TestRecordingTheSpecCostsNoWrite(t *testing.T) {
	w := newWorld(t)
	w.fields = []string{"tags"}
	w.setClassSpec(spec("s", "team", "a"))
	w.createMachine()
	(&shell{w: w}).settle(bound)
	assert.Equal(t, 4, w.store.writes)
	assert.Equal(t, machine.SplitSpec(w.class, w.fields), w.store.live().Status.VMSpec)
}

// A VM is updated only if its machine is ready, has no in-place update and is not being deleted, and only if
// its class is valid and differs in declared fields alone.
func TestOnlyVMsOfReadyMachinesAreUpdated(t *testing.T) {
	for name, disturb := range map[string]func(*world){
		"deleted": func(w *world) { w.store.remove() },
		"frozen":  func(w *world) { w.frozen = true },
		"unhealthy": func(w *world) {
			w.cluster.setReady(node, object.Unknown)
		},
		"node missing": func(w *world) { delete(w.cluster.nodes, node) },
		"candidate":    func(w *world) { w.edit(func(m *machine.Machine) { m.Spec.InPlace = machine.InPlaceCandidate }) },
		"selected":     func(w *world) { w.edit(func(m *machine.Machine) { m.Spec.InPlace = machine.InPlaceSelected }) },
		"no class":     func(w *world) { w.class = nil },
		"failed": func(w *world) {
			m := w.store.live().Clone()
			m.Status.Phase = machine.PhaseFailed
			w.store.force(m)
		},
		"otherwise": func(w *world) { w.setClassSpec(spec("l", "team", "b")) },
		"provider":  func(w *world) { w.class = w.class.Clone(); w.class.Provider = "another" },
		"opaque":    func(w *world) { w.setClassSpec("tags: none") },
		"invalid":   func(w *world) { w.class = w.class.Clone(); w.class.SecretRef = &object.Key{} },
	} {
		w, s := hotWorld(t)
		disturb(w)
		for range 3 {
			_, gone, err := s.reconcile()
			require.NoError(t, err)
			if gone {
				break
			}
			w.advance(20 * time.Second)
		}
		assert.Zero(t, w.provider.calls[codes.UpdateMachine], name)
	}
}

// The annotation that requests a replacement is set only if it does not exist.
func TestReplacementIsAskedForOnce(t *testing.T) {
	for _, value := range []string{"", "true", "false"} {
		w, s := hotWorld(t, ownedBySet, func(m *machine.Machine) {
			if value != "" {
				m.Annotations = map[string]string{machine.DefaultPolicy().Keys.Replace: value}
			}
		})
		w.failUpdates(codes.Unimplemented)
		w.runPass(s)
		want := value
		if value == "" {
			want = "true"
		}
		require.Equal(t, want, w.store.live().Annotations[w.policy.Keys.Replace])
		writes := w.store.writes
		w.runPass(s)
		require.Equal(t, writes, w.store.writes)
	}
}

// TestPlansWarnOfVMsThatAreNotUpdated: the machines of such VMs look healthy, and only a person can help.
func TestPlansWarnOfVMsThatAreNotUpdated(t *testing.T) {
	for reason, disturb := range map[string]func(*world){
		"ClassChangedOtherwise": func(w *world) { w.setClassSpec(spec("m", "team", "a")) },
		"VMToUpdateMissing":     func(w *world) { w.failUpdates(codes.NotFound) },
		"VMUpdateRefused":       func(w *world) { w.failUpdates(codes.Unimplemented) },
	} {
		w, s := hotWorld(t)
		disturb(w)
		plan, _, err := s.reconcile()
		require.NoError(t, err)
		require.Equal(t, reason, plan.Warn.Reason.String())
		require.Equal(t, plan.Why, plan.Warn)
	}
}

// If an update must wait for its turn, AskUpdate is repeated at the time of its answer, or after 10 s.
func TestUpdateTurnIsAskedForAgain(t *testing.T) {
	w, s := hotWorld(t)
	for _, c := range []struct{ at, want time.Duration }{{0, 10 * time.Second}, {-time.Hour, 10 * time.Second}, {time.Hour, time.Hour}} {
		w.updateTurn = func(*machine.Machine) *machine.UpdateTurn {
			return &machine.UpdateTurn{Detail: "others", At: w.now.Add(c.at)}
		}
		plan, _, err := s.reconcile()
		require.NoError(t, err)
		assert.Equal(t, w.now.Add(c.want), plan.At)
	}
	require.Zero(t, w.provider.calls[codes.UpdateMachine])
}

// An agent that updates a node in place brings its VM to the new class, except for the tags, which the driver
// updates.
func TestAgentUpdatesTheRestOfTheSpec(t *testing.T) {
	for _, healthy := range []bool{true, false} { // within the health timeout
		w, s := hotWorld(t)
		w.setClassSpec(spec("m", "team", "c"))
		m := w.store.live().Clone()
		m.Status.Phase, m.Status.Since = machine.PhaseInPlaceUpdateSuccessful, w.store.seconds()
		m.Status.LastOperation = machine.Operation{Kind: machine.OperationInPlaceUpdate, Stage: machine.StageUpdateSuccessful}
		w.store.force(m)
		if !healthy {
			w.cluster.setReady(m.Spec.NodeName, object.False)
			w.advance(w.policy.HealthTimeout + 2*time.Second)
			w.runPass(s)
			require.Equal(t, machine.PhaseUnknown, w.store.live().Status.Phase)
			w.cluster.setReady(m.Spec.NodeName, object.True)
		}
		s.settle(bound)
		m = w.store.live()
		require.Equal(t, machine.PhaseRunning, m.Status.Phase)
		require.Equal(t, machine.SplitSpec(w.class, w.fields), m.Status.VMSpec)
		require.Equal(t, 1, w.provider.calls[codes.UpdateMachine])
		require.Equal(t, map[string]string{"team": "c"}, w.provider.vms[0].tags)
	}
}

// A spec recorded when the driver declared other fields is of no use if the class has changed in fields that
// are declared in only one of the two cases: the digest of the rest may be equal by chance.
func TestRecordsOfOtherDeclarations(t *testing.T) {
	w, s := hotWorld(t)
	w.fields = []string{"labels"}
	w.setClassSpec(`{"size":"s","labels":{"a":"1"}}`)
	old := w.store.live().Status.VMSpec
	require.Equal(t, machine.SplitSpec(w.class, w.fields).Fixed, old.Fixed)
	plan, _, err := s.reconcile()
	require.NoError(t, err)
	require.Equal(t, machine.ReasonSpecFixed, plan.Why.Reason)
	require.Zero(t, w.provider.calls[codes.UpdateMachine])

	w.fields = []string{"labels", "tags"} // the class is as it was, and more can be updated
	w.setClassSpec(spec("s", "team", "a"))
	w.runPass(s)
	require.Equal(t, machine.SplitSpec(w.class, w.fields), w.store.live().Status.VMSpec)
	require.Zero(t, w.provider.calls[codes.UpdateMachine])
}

// An update without a known result is repeated, even if the driver declares other fields by then.
func TestBegunUpdateIsRepeatedWithOtherDeclaredFields(t *testing.T) {
	w, s := hotWorld(t)
	w.provider.faults = func(call codes.Call) fault {
		if call == codes.UpdateMachine {
			return fault{codes.DeadlineExceeded, true}
		}
		return fault{}
	}
	w.runPass(s)
	w.provider.faults = nil
	w.fields = []string{"labels", "tags"}
	w.setClassSpec(spec("s", "team", "a"))
	w.runPass(s)
	require.Equal(t, 2, w.provider.calls[codes.UpdateMachine])
	require.Equal(t, map[string]string{"team": "a"}, w.provider.vms[0].tags)
	require.Equal(t, machine.SplitSpec(w.class, w.fields), w.store.live().Status.VMSpec)
}

// LastApplied has the values from before an update without a known result, and the values of that update,
// because the VM may have either. So all of them are removed.
func TestLastAppliedHoldsAllPossibleValues(t *testing.T) {
	for _, done := range []bool{false, true} {
		w, s := hotWorld(t)
		w.setClassSpec(spec("s", "first", "1"))
		w.runPass(s)
		w.provider.faults = func(call codes.Call) fault {
			if call == codes.UpdateMachine {
				return fault{codes.DeadlineExceeded, done}
			}
			return fault{}
		}
		w.setClassSpec(spec("s", "second", "2"))
		w.runPass(s)
		w.provider.faults = nil
		w.provider.vms[0].tags["theirs"] = "0"
		w.setClassSpec(spec("s", "third", "3"))
		w.runPass(s)
		require.Equal(t, map[string]string{"third": "3", "theirs": "0"}, w.provider.vms[0].tags, "done: %t", done)
	}
}

// If the answer to a create was lost and a further create is announced twice, the values of the first create
// stay recorded in Begun.
func TestCreateAnnouncedTwiceKeepsBegunValues(t *testing.T) {
	w := newWorld(t)
	w.fields, w.provider.noStatus = []string{"tags"}, true
	w.setClassSpec(spec("s"))
	w.createMachine()
	w.provider.faults = func(call codes.Call) fault {
		if call == codes.CreateMachine {
			return fault{codes.DeadlineExceeded, true}
		}
		return fault{}
	}
	s := &shell{w: w}
	w.runPass(s)
	w.provider.faults = nil
	w.setClassSpec(spec("s", "c", "1"))
	w.killAt, w.killAfter = w.calls+2, true // the announcement
	_, _, err := s.reconcile()
	require.ErrorIs(t, err, errKilled)
	(&shell{w: w}).settle(bound)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	require.Equal(t, map[string]string{"c": "1"}, w.provider.vms[0].tags)
}

func classOf(spec string) *machine.Class {
	return &machine.Class{Provider: "model", ProviderSpec: []byte(spec)}
}

// TestOnlyDeclaredFieldsDiffer: examples of specs that differ only in declared fields (only), and of equal
// specs (same).
func TestOnlyDeclaredFieldsDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b, fields string
		only, same   bool
	}{
		{`{"size":"s","tags":{"a":"1"}}`, `{"tags":{"b":"2"},"size":"s"}`, "tags", true, false},
		{`{"size":"s","tags":{"a":"1"}}`, `{"size":"s"}`, "tags", true, false},
		{`{"size":"s","tags":null}`, `{"size":"s"}`, "tags", true, false},
		{`{"size":"s","tags":{"a":"1"}}`, `{"size":"m","tags":{"a":"1"}}`, "tags", false, false},
		{`{"size":"s","tags":{}}`, `{ "tags": {}, "size": "s" }`, "tags", true, true},
		{`{"size":"s"}`, `{"size":"s"}`, "tags", true, true},
		{`{"size":"s","Tags":1}`, `{"size":"s","Tags":2}`, "tags", false, false},
		{`{"n":[{"id":1,"tags":1},{"id":2}]}`, `{"n":[{"id":1,"tags":2},{"id":2,"tags":3}]}`, "n.tags", true, false},
		{`{"n":[{"id":1,"tags":1}]}`, `{"n":[{"id":2,"tags":1}]}`, "n.tags", false, false},
		{`{"n":[{"tags":1}]}`, `{"n":[{"tags":1},{}]}`, "n.tags", false, false},
		{`{"n":[[{"tags":1}]]}`, `{"n":[[{"tags":2}]]}`, "n.tags", true, false},
		{`{"n":{"tags":1}}`, `{}`, "n.tags", false, false},
		{`{"n":1}`, `{"n":2}`, "n.tags", false, false},
		{`{"n":1}`, `{"n":2}`, "n.tags,n", true, false},
		{`{"n":{"a":1}}`, `{"n":{"b":1}}`, "n,n.tags", true, false},
		{`{"v":1}`, `{"v":1.0}`, "tags", false, false},
		{`{"v":12345678901234567890}`, `{"v":12345678901234567891}`, "tags", false, false},
		{`{"tags":12345678901234567890}`, `{"tags":12345678901234567891}`, "tags", true, false},
		{`{"a.b":1}`, `{"a.b":2}`, "a.b", false, false},
		{`{"":1}`, `{"":2}`, "", false, false},
		{`{"a":{"":1}}`, `{"a":{"":2}}`, "a.", false, false},
		{`{"tags":1,"tags":2}`, `{"tags":1,"tags":3}`, "tags", false, false},
		{`{"tags":1} `, `{"tags":2}`, "tags", true, false},
		{`{"tags":1}x`, `{"tags":2}x`, "tags", false, false},
		{`[{"tags":1}]`, `[{"tags":2}]`, "tags", false, false},
		{"tags: 1", "tags: 2", "tags", false, false},
		{"", "", "tags", true, true},
		{"", "{}", "tags", false, false},
		{`{"tags":"` + "\xff" + `"}`, `{"tags":"` + "\xfe" + `"}`, "tags", false, false},
	} {
		fields := strings.Split(c.fields, ",")
		a, b := machine.SplitSpec(classOf(c.a), fields), machine.SplitSpec(classOf(c.b), fields)
		assert.Equal(t, c.only, a.Fixed == b.Fixed && a.Declared == b.Declared, "%s and %s by %s", c.a, c.b, c.fields)
		assert.Equal(t, c.same, a == b, "%s and %s by %s", c.a, c.b, c.fields)
		assert.Empty(t, a.Begun)
	}
}

// Specs of different providers are never equal. Declared contains each declared field once, sorted, without
// fields below it.
func TestSplitSpecRecordsProviderAndFields(t *testing.T) {
	a := classOf(`{"size":"s"}`)
	b := a.Clone()
	b.Provider = "another"
	assert.NotEqual(t, machine.SplitSpec(a, nil).Fixed, machine.SplitSpec(b, nil).Fixed)
	b.Provider, b.ProviderSpec = "", []byte(`model{"size":"s"}`)
	assert.NotEqual(t, machine.SplitSpec(a, nil).Fixed, machine.SplitSpec(b, nil).Fixed)
	got := machine.SplitSpec(a, []string{"tags", "nics.tags", "nics.tags", "nics.tags.a", "a,b", "", "x..y", "disks"})
	assert.Equal(t, "disks,nics.tags,tags", got.Declared)
	assert.Len(t, got.Fixed, 32)
}

// A spec that is nested too deeply has no updatable fields.
func TestDeepSpecsAreOpaque(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 1<<16) + strings.Repeat("]", 1<<16) + `}`
	assert.Empty(t, machine.SplitSpec(classOf(deep), []string{"a"}).Updatable)
	assert.NotEmpty(t, machine.SplitSpec(classOf(`{"a":[[[[1]]]]}`), []string{"a"}).Updatable)
}

// anyJSON returns a value of a provider spec.
func anyJSON(t *rapid.T, depth int) any {
	kinds := 4
	if depth == 0 {
		kinds = 2
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]any{nil, "x", true}).Draw(t, "word")
	case 1:
		return json.Number(rapid.SampledFrom([]string{"0", "1", "1.0", "1e3"}).Draw(t, "number"))
	case 2:
		list := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			list = append(list, anyJSON(t, depth-1))
		}
		return list
	}
	return anyObject(t, depth)
}

func anyObject(t *rapid.T, depth int) map[string]any {
	o := map[string]any{}
	for _, key := range []string{"tags", "nics", "size"} {
		if rapid.Bool().Draw(t, key) {
			o[key] = anyJSON(t, depth-1)
		}
	}
	return o
}

var anyFields = rapid.SampledFrom([][]string{
	nil, {"tags"}, {"nics.tags"}, {"tags", "nics.tags"}, {"nics.nics.tags", "size"}, {"nics", "nics.tags"}, {"tags.tags"},
})

// without is a slow oracle: it returns a copy of a value without the declared fields.
func without(value any, path string, fields []string) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range value {
			below := strings.TrimPrefix(path+"."+k, ".")
			if !slices.Contains(fields, below) {
				out[k] = without(v, below, fields)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, v := range value {
			out = append(out, without(v, path, fields))
		}
		return out
	}
	return value
}

// mutate returns a copy of a value with some random changes.
func mutate(t *rapid.T, value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, k := range []string{"tags", "nics", "size"} {
			v, there := value[k]
			switch rapid.IntRange(0, 7).Draw(t, "change "+k) {
			case 0:
				out[k] = anyJSON(t, 1)
			case 1:
			default:
				if there {
					out[k] = mutate(t, v)
				}
			}
		}
		return out
	case []any:
		out := []any{}
		for _, v := range value {
			out = append(out, mutate(t, v))
		}
		return out
	}
	return value
}

func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		panic(err) // all values can be encoded
	}
	return string(out)
}

// TestSplitSpecAgainstOracle: Fixed is equal exactly if the specs without the declared fields are equal, and
// the whole VMSpec exactly if the specs are. If Fixed is equal, each spec can be restored from the other (P4).
// Invariants: P4
func TestSplitSpecAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fields := anyFields.Draw(t, "fields")
		a := any(anyObject(t, 4))
		b := mutate(t, a)
		checkSplit(t, text(a), text(b), a, b, fields)
	})
}

func checkSplit(t require.TestingT, textA, textB string, a, b any, fields []string) {
	splitA, splitB := machine.SplitSpec(classOf(textA), fields), machine.SplitSpec(classOf(textB), fields)
	only := reflect.DeepEqual(without(a, "", fields), without(b, "", fields))
	require.Equal(t, only, splitA.Fixed == splitB.Fixed, "%s and %s by %s", textA, textB, fields)
	require.Equal(t, reflect.DeepEqual(a, b), splitA == splitB, "%s and %s by %s", textA, textB, fields)
	if only {
		restored := machine.RestoreSpec(classOf(textB), splitA)
		require.JSONEq(t, textA, string(restored))
		require.Equal(t, splitA, machine.SplitSpec(classOf(string(restored)), fields))
	}
}

// FuzzSplitSpec: any two specs can be compared, and if Fixed is equal, they differ only in declared fields.
func FuzzSplitSpec(f *testing.F) {
	for _, c := range [][2]string{
		{`{"size":"s","tags":{"a":"1"}}`, `{"tags":{},"size":"s"}`}, {`{"n":[{"tags":1}]}`, `{"n":[{}]}`},
		{"", "null"}, {`{"tags":1,"tags":2}`, "[]"}, {`{"a":"\ud800"}`, `{"a":"\ud801"}`}, {"{", "\xff"}, {`{"n":{"tags":[]}}`, `{"n":{}}`},
		{`{"n":[{"tags":1},{}]}`, `{"n":[{"tags":1}]}`},
	} {
		f.Add(c[0], c[1])
	}
	fields := []string{"tags", "n.tags"}
	f.Fuzz(func(t *testing.T, textA, textB string) {
		a, b := machine.SplitSpec(classOf(textA), fields), machine.SplitSpec(classOf(textB), fields)
		if textA == textB {
			require.Equal(t, a, b)
		}
		_ = machine.RestoreSpec(classOf(textA), b) // must not panic
		if a.Updatable == "" || a.Fixed != b.Fixed {
			return
		}
		var valueA, valueB any
		require.NoError(t, json.Unmarshal([]byte(textA), &valueA))
		require.NoError(t, json.Unmarshal([]byte(textB), &valueB))
		require.Equal(t, without(valueA, "", fields), without(valueB, "", fields))
		restored := machine.RestoreSpec(classOf(textB), a)
		require.Equal(t, a, machine.SplitSpec(classOf(string(restored)), fields))
	})
}

// Until an update is answered, a VM may have the values from before it or those of the update. So the union of
// both loses no name, in lists either.
func TestUnionOfValues(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{`{"tags":{"a":"1"}}`, `{"tags":{"b":"2"}}`, `{"tags":{"a":"1","b":"2"}}`},
		{`{"tags":{"a":"1"}}`, `{"tags":{"a":"2"}}`, `{"tags":{"a":"2"}}`},
		{`{"disks":[{"tags":{"a":"1"}}]}`, `{"disks":[{"tags":{"b":"2"}}]}`, `{"disks":[{"tags":{"a":"1","b":"2"}}]}`},
		{
			`{"disks":[{"tags":{"a":"1"}},null]}`, `{"disks":[{"tags":{"a":"3"}},{"tags":{"b":"2"}}]}`,
			`{"disks":[{"tags":{"a":"3"}},{"tags":{"b":"2"}}]}`,
		},
		{`{"n":[[{"tags":1}]]}`, `{"n":[[{"labels":2}]]}`, `{"n":[[{"labels":2,"tags":1}]]}`},
		{`{"n":[1]}`, `{"n":[2,3]}`, `{"n":[2,3]}`},
		{`{"n":{"a":1}}`, `{"n":[2]}`, `{"n":[2]}`},
		{"", `{"tags":1}`, `{"tags":1}`},
		{`{"tags":1}`, "", `{"tags":1}`},
	} {
		assert.Equal(t, c.want, machine.UnionOfValues(c.first, c.second), "%s and %s", c.first, c.second)
	}
}
