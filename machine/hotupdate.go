package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// A VM is changed where it is, without a replacement, when the spec that it
// should have differs from the one it was made from only in fields that the
// driver declares. The machine keeps its phase and its node meanwhile.
//
// Each call is announced by a write in the very pass that issues it, as a
// create is: a reader of an old state fails there, before it can bring back
// what was asked for earlier. What was announced stays noted until a call has
// been answered with OK, so that one whose answer got lost is made good even if
// the spec is what it was before.

// turnRetry is after how long a machine asks again whether it is its turn.
const turnRetry = 10 * time.Second

// vmMatchesClass reports whether there is nothing to do about the VM's spec: the driver
// declares nothing, or the VM is as the class says.
func (d *decider) vmMatchesClass() bool {
	return d.o.VMSpec == nil || d.m.Status.VMSpec == *d.o.VMSpec
}

// thenUpdateVM returns the plan it is given if that does anything. Otherwise it decides
// about the VM's spec: whether to update the VM to what its class says.
func (d *decider) thenUpdateVM(plan Plan) Plan {
	if d.vmMatchesClass() || plan.Write != nil || plan.Effect != nil || !d.updatable() {
		return plan
	}
	if err := d.o.Class.Validate(); err != nil {
		plan.Why = decision.Why{Reason: reasonUpdateClass, Name: d.m.Spec.ProviderID, Detail: err.Error()}
		plan.Warn = firstOf(plan.Warn, plan.Why)
		return plan
	}
	want, have := d.o.VMSpec, d.knownSpec()
	switch {
	case have == VMSpec{}:
		return d.recordSpec(reasonSpecTaken)
	case have == *want:
		return d.recordSpec(reasonSpecNoted)
	case have.Declared != want.Declared || have.Fixed != want.Fixed:
		plan.Why = decision.Why{Reason: reasonSpecFixed, Name: d.m.Spec.Class.Name}
		plan.Warn = firstOf(plan.Warn, plan.Why)
		return plan
	}
	if next, busy := d.updateBackoff(plan); busy {
		return next
	}
	return d.updateVM(plan, have)
}

// updatable reports whether a VM may be changed where it is: it does its work,
// and no other update or deletion is under way.
func (d *decider) updatable() bool {
	phase := d.m.Status.Phase
	return (phase == PhaseRunning || phase == PhaseAvailable) && d.m.Spec.InPlace == InPlaceNone &&
		d.m.Spec.ProviderID != "" && d.o.Class != nil
}

// firstOf is the first of two reasons that says anything.
func firstOf(a, b decision.Why) decision.Why {
	if a != (decision.Why{}) {
		return a
	}
	return b
}

// knownSpec is the spec that the VM is known to have, in terms of what the
// driver declares now. A record from when it declared other fields says as
// much, unless the class has changed in others since.
func (d *decider) knownSpec() VMSpec {
	have, want := d.m.Status.VMSpec, d.o.VMSpec
	if have.Fixed == "" || have.Declared == want.Declared {
		return have
	}
	was := strings.Split(have.Declared, ",")
	if SplitSpec(d.o.Class, was).Fixed != have.Fixed {
		return have
	}
	now := strings.Split(want.Declared, ",")
	next := SplitSpec(d.classAsOf(have), now)
	if have.Begun != "" {
		begun := have
		begun.Updatable = have.Begun
		next.Begun = SplitSpec(d.classAsOf(begun), now).Updatable
	}
	return next
}

// classAsOf is the class as it was when its spec had that split.
func (d *decider) classAsOf(have VMSpec) *Class {
	return &Class{Provider: d.o.Class.Provider, ProviderSpec: RestoreSpec(d.o.Class, have)}
}

// recordSpec records that the VM has the spec of its class.
func (d *decider) recordSpec(reason decision.Reason) Plan {
	why := decision.Why{Reason: reason, Name: d.m.Spec.Class.Name}
	return d.setStatus(why, func(s *Status) { s.VMSpec = *d.o.VMSpec })
}

// recordAgentUpdate notes that an agent has brought the VM to what its class says, but
// for what the driver can update.
func (d *decider) recordAgentUpdate(plan Plan) Plan {
	write, ok := plan.Write.(*UpdateStatus)
	if want := d.o.VMSpec; ok && want != nil && write.Status.VMSpec.Declared == want.Declared && write.Status.VMSpec.Fixed != "" {
		write.Status.VMSpec.Fixed = want.Fixed
	}
	return plan
}

// updateBackoff holds an update back: after a failure as the recovery table says;
// for good, until something changes, where the VM can't be changed. One said to be
// gone is asked for again after the health timeout, and 10 min at least: if it
// were gone its machine would have failed by then.
func (d *decider) updateBackoff(plan Plan) (Plan, bool) {
	op := &d.m.Status.LastOperation
	if op.Kind != OperationUpdate || op.State != StateFailed || op.Stage == StageSyncNode {
		return Plan{}, false
	}
	if NeverUpdated(op.Code) && op.Against == d.inputs() {
		return d.updateNotRetried(plan, op)
	}
	at := d.retryAt(codes.UpdateMachine)
	if at.IsZero() {
		return Plan{}, false
	}
	later := d.retryLater(string(op.Stage), at, time.Time{})
	if plan.Why = later.Why; later.At.IsZero() {
		return plan, true
	}
	return lookAgainBy(plan, at), true
}

// NeverUpdated reports whether a code of UpdateMachine says that asking again soon is
// of no use: the VM is gone, or can't be changed.
func NeverUpdated(code codes.Code) bool { return code == codes.NotFound || code == codes.Unimplemented }

// updateNotRetried leaves a VM that is gone to the verdict on its machine's health for the
// time that takes, and has a machine replaced whose VM can't be changed.
func (d *decider) updateNotRetried(plan Plan, op *Operation) (Plan, bool) {
	if op.Code != codes.NotFound {
		return d.replaceInsteadOfUpdate(plan), true
	}
	plan.Why = decision.Why{Reason: reasonUpdateNoVM, Name: d.m.Spec.ProviderID}
	plan.Warn = firstOf(plan.Warn, plan.Why)
	if d.o.NoCluster { // its health is not judged
		return plan, true
	}
	at := d.deadlineAfter(op.Time, max(d.p.healthTimeout(d.m), codes.Long.Backoff(0, 0)))
	return lookAgainBy(plan, at), d.now.Before(at) && !op.Time.After(d.now)
}

// replaceInsteadOfUpdate has a machine replaced whose VM can't be changed, if there is anybody
// who does.
func (d *decider) replaceInsteadOfUpdate(plan Plan) Plan {
	name, key := d.m.Spec.ProviderID, d.p.Keys.Replace
	if key == "" || d.m.Owner == nil {
		plan.Why = decision.Why{Reason: reasonUpdateRefused, Name: name}
		plan.Warn = firstOf(plan.Warn, plan.Why)
		return plan
	}
	why := decision.Why{Reason: reasonUpdateReplace, Name: name}
	if d.m.Annotations[key] != "" { // what it says is its owner's to decide
		plan.Why = why
		return plan
	}
	changed := d.m.Clone()
	changed.Annotations = maps.Clone(changed.Annotations)
	if changed.Annotations == nil {
		changed.Annotations = make(map[string]string, 1)
	}
	changed.Annotations[key] = "true"
	return Plan{Write: &Update{changed}, Why: why}
}

// updateVM asks for its turn, announces the update, issues it, and looks at
// its answer.
func (d *decider) updateVM(plan Plan, have VMSpec) Plan {
	why := decision.Why{Reason: reasonUpdateVM, Name: d.m.Spec.ProviderID}
	if answer := d.o.Updated; answer != nil {
		return d.updateAnswered(answer, why)
	}
	switch turn := d.o.UpdateTurn; {
	case turn == nil:
		why.Reason = reasonAskUpdate
		return Plan{Effect: AskUpdate{}, Why: why}
	case !turn.Allowed:
		plan.Why = decision.Why{Reason: reasonAwaitTurn, Name: why.Name, Detail: turn.Detail}
		if turn.At.After(d.now) {
			return lookAgainBy(plan, turn.At)
		}
		return lookAgainBy(plan, d.now.Add(turnRetry))
	}
	if have.Begun != "" && have.Begun != d.o.VMSpec.Updatable {
		have.Updatable = unite(have.Updatable, have.Begun) // the VM may have either
	}
	have.Begun = d.o.VMSpec.Updatable
	if !d.updateAnnounced(have) {
		why.Reason = reasonUpdateAnnounced
		return d.setStatus(why, func(s *Status) {
			s.VMSpec = have
			s.LastOperation = d.operation(OperationUpdate, StateProcessing, StageUpdateVM)
		})
	}
	return Plan{Effect: UpdateVM{string(RestoreSpec(d.o.Class, have))}, Why: why}
}

func (d *decider) updateAnnounced(noted VMSpec) bool {
	s := &d.m.Status
	return d.o.Fenced && s.VMSpec == noted && s.LastOperation.Kind == OperationUpdate &&
		s.LastOperation.State == StateProcessing
}

// updateAnswered records how an update ended.
func (d *decider) updateAnswered(answer *VM, why decision.Why) Plan {
	if answer.Code == codes.OK {
		why.Reason = ReasonVMUpdated
		return d.setStatus(why, func(s *Status) {
			d.copyVMState(s)
			s.VMSpec = *d.o.VMSpec
			s.LastOperation = d.operation(OperationUpdate, StateSuccessful, StageUpdateVM)
			s.LastOperation.Message = "the VM is as class " + d.m.Spec.Class.Name + " says"
		})
	}
	why.Reason, why.Code, why.Detail = reasonVMUpdateFailed, answer.Code, answer.Message
	return d.setStatus(why, func(s *Status) {
		d.copyVMState(s)
		s.LastOperation = d.failure(OperationUpdate, StageUpdateVM, answer.Code, answer.Message)
	})
}

// VMSpec is a provider spec as far as it matters for a VM that exists: split
// into what a driver can change on it, and the rest. It is what machines keep
// of the spec that they were made from, in some hundred bytes, as long as the
// values that can be changed are no more. Values are comparable. The zero
// VMSpec: nothing is known.
type VMSpec struct {
	// Declared are the fields that the driver could change when this was
	// noted, sorted, with commas between them.
	Declared string
	// Fixed is a digest of all else in the spec, and of the provider's name.
	// Empty: nothing is known.
	Fixed string
	// Updatable holds the values of the declared fields, as JSON. Empty if the
	// spec is no JSON object: none of it can be changed then.
	Updatable string
	// Begun are the values that an update asked for whose success is not known:
	// the VM may have them, or some of them. Empty: there is none.
	Begun string
}

// fixedLength is how many bytes of a digest are kept: two specs that differ
// have the same with a chance of one in 2^64 tries.
const fixedLength = 16

// SplitSpec splits the provider spec of a class by the fields that a driver
// declares: names joined by dots from the top of the spec, where a name stands
// for all that is below it and leads through the elements of a list. Names that
// contain a dot or a comma can't be declared, and empty ones declare nothing.
//
// Two specs differ only in declared fields if and only if their Fixed is the
// same, and in nothing if Updatable is too. A spec that is not one JSON object,
// with UTF-8 text and no key twice, has nothing that can be changed.
func SplitSpec(c *Class, fields []string) VMSpec {
	declared := declare(fields)
	out := VMSpec{Declared: declared.String()}
	spec, ok := decodeObject(c.ProviderSpec)
	if !ok {
		out.Fixed = digest(c.Provider, "opaque", c.ProviderSpec)
		return out
	}
	taken, _ := declared.take(spec).(map[string]any)
	if taken == nil {
		taken = map[string]any{}
	}
	out.Updatable = string(encode(taken))
	out.Fixed = digest(c.Provider, "object", encode(spec))
	return out
}

// RestoreSpec returns the provider spec of which have is the split, given a
// class whose spec differs from it only in fields that were declared then. Values of
// lists whose length has changed are ignored. The text need not be the same byte for
// byte, but its content is.
func RestoreSpec(c *Class, have VMSpec) []byte {
	spec, ok := decodeObject(c.ProviderSpec)
	if !ok {
		return bytes.Clone(c.ProviderSpec)
	}
	values, _ := decodeObject([]byte(have.Updatable))
	declared := declare(strings.Split(have.Declared, ","))
	declared.take(spec)
	return encode(declared.put(spec, values))
}

// digest is a short name of a spec's text and kind.
func digest(provider, kind string, text []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, provider+"\x00"+kind+"\x00") // never fails
	_, _ = h.Write(text)
	return hex.EncodeToString(h.Sum(nil)[:fixedLength])
}

// encode writes what decodeObject has read. Keys are sorted, and numbers are
// spelled as they were.
func encode(value any) []byte {
	text, _ := json.Marshal(value) // can't fail: maps, lists, strings and numbers that were read
	return text
}

// maxDepth is how deep a spec may be nested and still be looked into.
const maxDepth = 100

// decodeObject reads one JSON object. A key that is there twice is refused:
// drivers may differ in which of the values counts.
func decodeObject(text []byte) (map[string]any, bool) {
	if !utf8.Valid(text) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	value, ok := decodeValue(d, maxDepth)
	object, is := value.(map[string]any)
	if _, err := d.Token(); !ok || !is || err != io.EOF { //nolint:errorlint // Token returns it bare
		return nil, false
	}
	return object, true
}

func decodeValue(d *json.Decoder, depth int) (any, bool) {
	token, err := d.Token()
	if err != nil || depth == 0 {
		return nil, false
	}
	switch token {
	case json.Delim('{'):
		return decodeEntries(d, depth-1)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, ok := decodeValue(d, depth-1)
			if !ok {
				return nil, false
			}
			list = append(list, value)
		}
		_, err := d.Token()
		return list, err == nil
	}
	return token, true
}

func decodeEntries(d *json.Decoder, depth int) (any, bool) {
	object := map[string]any{}
	for d.More() {
		token, err := d.Token()
		key, is := token.(string)
		if err != nil || !is {
			return nil, false
		}
		value, ok := decodeValue(d, depth)
		if _, twice := object[key]; twice || !ok {
			return nil, false
		}
		object[key] = value
	}
	_, err := d.Token()
	return object, err == nil
}

// declaration is a tree of declared fields. A name without names below it is
// declared with all that it holds.
type declaration map[string]declaration

// declare makes a tree of fields; those that can't be declared are left out.
func declare(fields []string) declaration {
	root := declaration{}
	for _, field := range fields {
		names := strings.Split(field, ".")
		if strings.Contains(field, ",") || slices.Contains(names, "") {
			continue
		}
		at, covered := root, false
		for _, name := range names[:len(names)-1] {
			below, known := at[name]
			if covered = known && len(below) == 0; covered {
				break // a shorter name stands for this one
			}
			if !known {
				below = declaration{}
				at[name] = below
			}
			at = below
		}
		if !covered {
			at[names[len(names)-1]] = declaration{}
		}
	}
	return root
}

// String spells the fields that are declared, sorted.
func (t declaration) String() string {
	var fields []string
	t.list("", &fields)
	slices.Sort(fields)
	return strings.Join(fields, ",")
}

func (t declaration) list(prefix string, fields *[]string) {
	for name, below := range t {
		if len(below) == 0 {
			*fields = append(*fields, prefix+name)
			continue
		}
		below.list(prefix+name+".", fields)
	}
}

// take removes the declared fields from a value and returns them, in objects
// and lists like those that they were in; nil: there are none.
func (t declaration) take(value any) any {
	switch value := value.(type) {
	case map[string]any:
		var taken map[string]any
		for name, below := range t {
			part, there := value[name]
			if !there {
				continue
			}
			if len(below) == 0 {
				delete(value, name)
			} else if part = below.take(part); part == nil {
				continue
			}
			if taken == nil {
				taken = map[string]any{}
			}
			taken[name] = part
		}
		if taken == nil {
			return nil
		}
		return taken
	case []any:
		taken, found := make([]any, len(value)), false
		for i := range value {
			taken[i] = t.take(value[i])
			found = found || taken[i] != nil
		}
		if found {
			return taken
		}
	}
	return nil
}

// put is the reverse of take: it puts fields back into a value from which they
// were taken, and returns it.
func (t declaration) put(value, taken any) any {
	switch value := value.(type) {
	case map[string]any:
		parts, _ := taken.(map[string]any)
		for name, below := range t {
			part, there := parts[name]
			switch {
			case !there:
			case len(below) == 0:
				value[name] = part
			default:
				below.put(value[name], part)
			}
		}
	case []any:
		parts, _ := taken.([]any)
		if len(parts) != len(value) {
			return value
		}
		for i := range value {
			t.put(value[i], parts[i])
		}
	}
	return value
}

// unite holds what either of two records of updatable values says: all names of
// both, with the values of the second where both have one.
func unite(first, second string) string {
	a, ok := decodeObject([]byte(first))
	b, both := decodeObject([]byte(second))
	switch {
	case !both:
		return first
	case !ok:
		return second
	}
	return string(encode(uniteValues(a, b)))
}

func uniteValues(a, b any) any {
	switch b := b.(type) {
	case map[string]any:
		a, _ := a.(map[string]any)
		for name, value := range a {
			if other, both := b[name]; both {
				b[name] = uniteValues(value, other)
			} else {
				b[name] = value
			}
		}
	case []any:
		if a, _ := a.([]any); len(a) == len(b) {
			for i := range b {
				b[i] = uniteValues(a[i], b[i])
			}
		}
	}
	return b
}
