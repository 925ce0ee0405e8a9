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

// A VM is updated, and not replaced, if only fields that the driver declares as updatable differ between its
// class and the spec that it was created from. The machine keeps its phase and its node.
//
// Each call is announced by a write in the same pass, as for a create: a process with a stale machine fails
// at that write, before it can restore old values. The announced values stay recorded until a call is
// answered with OK. So if an answer is lost, the call is repeated, even if the class is what it was before.

// turnRetry is how long to wait before AskUpdate is repeated.
const turnRetry = 10 * time.Second

// vmMatchesClass reports whether the VM needs no update: the driver declares no updatable fields, there is no
// class, or the VM has the spec of its class.
func (d *decider) vmMatchesClass() bool {
	return d.o.VMSpec == nil || d.m.Status.VMSpec == *d.o.VMSpec
}

// thenUpdateVM returns the given plan if it has a write or an effect. Otherwise it decides whether to update
// the VM to its class.
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
		return d.recordSpec(reasonSpecAssumed)
	case have == *want:
		return d.recordSpec(reasonSpecRecorded)
	case have.Declared != want.Declared || have.Fixed != want.Fixed:
		plan.Why = decision.Why{Reason: reasonSpecFixed, Name: d.m.Spec.Class.Name}
		plan.Warn = firstOf(plan.Warn, plan.Why)
		return plan
	}
	if next, found := d.updateBackoff(plan); found {
		return next
	}
	return d.updateVM(plan, have)
}

// updatable reports whether the VM may be updated now: the machine is ready and has no other update.
func (d *decider) updatable() bool {
	phase := d.m.Status.Phase
	return (phase == PhaseRunning || phase == PhaseAvailable) && d.m.Spec.InPlace == InPlaceNone &&
		d.m.Spec.ProviderID != "" && d.o.Class != nil
}

// firstOf returns the first of two reasons that is not zero.
func firstOf(a, b decision.Why) decision.Why {
	if a != (decision.Why{}) {
		return a
	}
	return b
}

// knownSpec returns the spec that the VM is known to have, split by the fields that the driver declares now. A
// record with other declared fields is converted, unless the class has changed in further fields since.
func (d *decider) knownSpec() VMSpec {
	have, want := d.m.Status.VMSpec, d.o.VMSpec
	if have.Fixed == "" || have.Declared == want.Declared {
		return have
	}
	oldFields := strings.Split(have.Declared, ",")
	if SplitSpec(d.o.Class, oldFields).Fixed != have.Fixed {
		return have
	}
	newFields := strings.Split(want.Declared, ",")
	next := SplitSpec(d.classAsOf(have), newFields)
	if have.Begun != "" {
		begun := have
		begun.Updatable = have.Begun
		next.Begun = SplitSpec(d.classAsOf(begun), newFields).Updatable
	}
	return next
}

// classAsOf returns the class as it was when its spec was split into have.
func (d *decider) classAsOf(have VMSpec) *Class {
	return &Class{Provider: d.o.Class.Provider, ProviderSpec: RestoreSpec(d.o.Class, have)}
}

// recordSpec records that the VM has the spec of its class.
func (d *decider) recordSpec(reason decision.Reason) Plan {
	why := decision.Why{Reason: reason, Name: d.m.Spec.Class.Name}
	return d.setStatus(why, func(s *Status) { s.VMSpec = *d.o.VMSpec })
}

// recordAgentUpdate records that an agent has updated the VM to its class, except for the fields that the
// driver updates.
func (d *decider) recordAgentUpdate(plan Plan) Plan {
	write, ok := plan.Write.(*UpdateStatus)
	if want := d.o.VMSpec; ok && want != nil && write.Status.VMSpec.Declared == want.Declared && write.Status.VMSpec.Fixed != "" {
		write.Status.VMSpec.Fixed = want.Fixed
	}
	return plan
}

// updateBackoff waits for the next attempt after a failed update. If the VM can't be updated, it waits for a
// change. After NOT_FOUND it waits for the health timeout, at least 10 min: if the VM were really gone, the
// node would be missing, and the machine have failed by then. Without a cluster it waits for a change.
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

// NeverUpdated reports whether a code of UpdateMachine says that a retry is of no use soon: the VM is gone, or
// can't be updated.
func NeverUpdated(code codes.Code) bool { return code == codes.NotFound || code == codes.Unimplemented }

// updateNotRetried handles an update that is not retried soon. If the VM is gone, the machine's health decides.
// If the VM can't be updated, its machine is to be replaced.
func (d *decider) updateNotRetried(plan Plan, op *Operation) (Plan, bool) {
	if op.Code != codes.NotFound {
		return d.replaceInsteadOfUpdate(plan), true
	}
	plan.Why = decision.Why{Reason: reasonUpdateNoVM, Name: d.m.Spec.ProviderID}
	plan.Warn = firstOf(plan.Warn, plan.Why)
	if d.o.NoCluster { // no node shows that the VM is there
		return plan, true
	}
	at := d.deadlineAfter(op.Time, max(d.p.healthTimeout(d.m), codes.Long.Backoff(0, 0)))
	return lookAgainBy(plan, at), d.now.Before(at) && !op.Time.After(d.now)
}

// replaceInsteadOfUpdate asks the machine's set, by annotation Keys.Replace, to replace a machine whose VM can't
// be updated. A machine without an owner is left unchanged.
func (d *decider) replaceInsteadOfUpdate(plan Plan) Plan {
	name, key := d.m.Spec.ProviderID, d.p.Keys.Replace
	if key == "" || d.m.Owner == nil {
		plan.Why = decision.Why{Reason: reasonUpdateRefused, Name: name}
		plan.Warn = firstOf(plan.Warn, plan.Why)
		return plan
	}
	why := decision.Why{Reason: reasonUpdateReplace, Name: name}
	if d.m.Annotations[key] != "" { // requested already
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

// updateVM asks whether the VM may be updated now, announces the update, issues it, and handles its answer.
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
		plan.Why = decision.Why{Reason: reasonUpdateDelayed, Name: why.Name, Detail: turn.Detail}
		if turn.At.After(d.now) {
			return lookAgainBy(plan, turn.At)
		}
		return lookAgainBy(plan, d.now.Add(turnRetry))
	}
	if have.Begun != "" && have.Begun != d.o.VMSpec.Updatable {
		have.Updatable = unionOfValues(have.Updatable, have.Begun) // the VM may have either
	}
	have.Begun = d.o.VMSpec.Updatable
	if !d.updateAnnouncedThisPass(have) {
		why.Reason = reasonUpdateAnnounced
		return d.setStatus(why, func(s *Status) {
			s.VMSpec = have
			s.LastOperation = d.operation(OperationUpdate, StateProcessing, StageUpdateVM)
		})
	}
	return Plan{Effect: UpdateVM{string(RestoreSpec(d.o.Class, have))}, Why: why}
}

// updateAnnouncedThisPass reports whether this pass has announced an update that leads to this record.
func (d *decider) updateAnnouncedThisPass(record VMSpec) bool {
	s := &d.m.Status
	return d.o.Fresh && s.VMSpec == record && s.LastOperation.Kind == OperationUpdate &&
		s.LastOperation.State == StateProcessing
}

// updateAnswered records the result of an update.
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

// VMSpec is a provider spec, split into what a driver can update on an existing VM and the rest. Machines keep
// it as the record of the spec that their VM was created from or last updated to. It takes some hundred
// bytes, unless the updatable values are larger. Values are comparable. The zero VMSpec: not known.
type VMSpec struct {
	// Declared are the fields that the driver declared as updatable when this was recorded: sorted,
	// separated by commas.
	Declared string
	// Fixed is a digest of the rest of the spec and of the provider's name. Empty: not known.
	Fixed string
	// Updatable holds the values of the declared fields, as JSON. Empty if the spec is no JSON object,
	// so that nothing of it can be updated.
	Updatable string
	// Begun are the values of a create or update whose result is not known: the VM may have them, or
	// some of them. Empty: there is none.
	Begun string
}

// fixedLength is the length of a digest in bytes. A collision is to be expected among 2^64 different specs.
const fixedLength = 16

// SplitSpec splits the provider spec of a class by the fields that a driver declares. A field is a path of names
// joined by dots; it stands for everything below it, and leads through the elements of lists. Names that
// contain a dot or a comma can't be declared. Empty names declare nothing.
//
// Two specs differ at most in declared fields if and only if their Fixed is the same, and are equal if
// Updatable is the same too. A spec has no updatable fields unless it is one JSON object in UTF-8 without
// duplicate keys.
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

// RestoreSpec returns the provider spec that was split into have, given a class whose spec differs from it
// only in fields that were declared then. Values of lists whose length has changed are ignored. The content
// is the same; the text may differ.
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

// digest returns a short hash of a spec's text and kind.
func digest(provider, kind string, text []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, provider+"\x00"+kind+"\x00") // never fails
	_, _ = h.Write(text)
	return hex.EncodeToString(h.Sum(nil)[:fixedLength])
}

// encode writes what decodeObject has read. Keys are sorted, and numbers keep their spelling.
func encode(value any) []byte {
	text, _ := json.Marshal(value) // can't fail: maps, lists, strings and numbers that were read
	return text
}

// maxDepth is the deepest nesting of a spec that is read.
const maxDepth = 100

// decodeObject reads one JSON object. It refuses duplicate keys, because drivers may differ in which value
// counts.
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

// declaration is a tree of declared fields. A name without names below it is declared with everything that it
// holds.
type declaration map[string]declaration

// declare builds a tree of fields. It ignores fields that can't be declared.
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

// String returns the declared fields, sorted.
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

// take removes the declared fields from a value, and returns them in objects and lists of the same structure.
// It returns nil if there are none.
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

// put is the inverse of take: it puts fields back into the value from which they were taken, and returns it.
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

// unionOfValues returns the entries of two values of VMSpec.Updatable. If both have a name, the second one's
// value counts.
func unionOfValues(first, second string) string {
	a, ok := decodeObject([]byte(first))
	b, both := decodeObject([]byte(second))
	switch {
	case !both:
		return first
	case !ok:
		return second
	}
	return string(encode(unionValues(a, b)))
}

func unionValues(a, b any) any {
	switch b := b.(type) {
	case map[string]any:
		a, _ := a.(map[string]any)
		for name, value := range a {
			if other, both := b[name]; both {
				b[name] = unionValues(value, other)
			} else {
				b[name] = value
			}
		}
	case []any:
		if a, _ := a.([]any); len(a) == len(b) {
			for i := range b {
				b[i] = unionValues(a[i], b[i])
			}
		}
	}
	return b
}
