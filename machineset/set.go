package machineset

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Finalizer keeps a set until its machines are gone; deployments have
// a finalizer of the same name.
const Finalizer = "machine.sapcloud.io/machine-controller-manager"

// OwnerKind is the Owner.Kind of a machine that belongs to a set.
const OwnerKind = "MachineSet"

// Set keeps a number of equal machines.
type Set struct {
	object.Meta
	// Revision numbers the templates of the deployment that owns the set. The set with the highest
	// revision has the deployment's present template. It is written with the metadata. Zero: none was given;
	// a negative one counts as zero.
	Revision int64
	// Instructions come from the set's deployment.
	Instructions Instructions
	Spec         Spec
	Status       Status
}

// Spec says what a set should be. A user writes it, or the set's deployment.
type Spec struct {
	Replicas int32 // not negative
	Selector object.Selector
	Template Template
	// MinReady is how long a machine must be ready to count as available.
	MinReady time.Duration
	// MaxAge is how old a machine gets before it is replaced; see ExpiresAt.
	// Not negative, and at least a minute; zero means no limit.
	MaxAge time.Duration
	// AutoPreserve is how many failed machines are kept for inspection at a time instead of being replaced.
	// Not negative; zero: none. If the set has a deployment, the deployment writes it.
	AutoPreserve int32
}

// Template describes the machines that a set creates.
type Template struct {
	Labels      map[string]string
	Annotations map[string]string
	Spec        machine.Spec // without ProviderID, NodeName, Marks and InPlace
}

// Status is what is known of a set. Only the library writes it.
type Status struct {
	Replicas           int32 // machines that are not being deleted
	FullyLabeled       int32 // of these, with all labels of the template
	Ready              int32 // of these, ready
	Available          int32 // of these, ready for Spec.MinReady and not preserved
	Preserved          int32 // machines of the set that are kept for inspection
	PreservedFailed    int32 // of the preserved ones, those in phase Failed
	AutoPreserved      int32 // machines that count against Spec.AutoPreserve
	ObservedGeneration int64
	Conditions         []object.Condition
	// Failed are machines whose last operation failed: the 10 that were created last,
	// the newest first, and by name if they are of the same age. It leaves out machines
	// that are being deleted, and those that PreservedFailed counts.
	Failed []FailedMachine
	// Failing counts all such machines, whether Failed lists them or not.
	Failing int32
	// LastOperation is the set's own: Failed since an order for a machine was
	// refused (Create, Delete, or Update for all other orders), Successful once such an
	// order was carried out. Zero: none was ever refused. Against.Machine is the
	// generation of the set.
	LastOperation machine.Operation
	// CrashLoop counts machines that failed before they were ready.
	CrashLoop CrashLoop
}

// Condition types of a set.
const (
	ConditionReplicaFailure = "ReplicaFailure"
	ConditionFrozen         = "Frozen"
	ConditionSpecValid      = machine.ConditionSpecValid
	// ConditionCreationSlowed: the provider refuses to create machines of the
	// set's class, so they are created one at a time. The reason is the code of its answer.
	ConditionCreationSlowed = "CreationSlowed"
	// ConditionReplacementSlowed: machines failed again and again before they
	// ran, and their replacements wait.
	ConditionReplacementSlowed = "ReplacementSlowed"
)

// FailedMachine is a machine whose last operation failed.
type FailedMachine struct {
	Name          string
	ProviderID    string // empty: none, or longer than codes.MaxMessage
	Owner         string // the set's name
	LastOperation machine.Operation
}

// FailedMachineOf describes a failed machine of a set, which is given by its name. The message is cut to
// codes.MaxMessage bytes.
func FailedMachineOf(m *machine.Machine, set string) FailedMachine {
	s := FailedMachine{Name: m.Name, ProviderID: m.Spec.ProviderID, Owner: set, LastOperation: m.Status.LastOperation}
	s.LastOperation.Message, _ = codes.Bounded(s.LastOperation.Message)
	if len(s.ProviderID) > codes.MaxMessage {
		s.ProviderID = ""
	}
	return s
}

// Clone implements object.Object.
func (s *Set) Clone() *Set {
	c := &Set{
		Meta: s.CloneMeta(), Revision: s.Revision, Instructions: s.Instructions.Clone(), Spec: s.Spec.Clone(),
	}
	c.CopyStatus(s)
	return c
}

// Clone returns a copy that shares nothing with s.
func (s *Spec) Clone() Spec {
	c := *s
	c.Selector = s.Selector.Clone()
	c.Template = s.Template.Clone()
	return c
}

// Clone returns a copy that shares nothing with t.
func (t *Template) Clone() Template {
	return Template{
		Labels:      maps.Clone(t.Labels),
		Annotations: maps.Clone(t.Annotations),
		Spec:        t.Spec.Clone(),
	}
}

// Equal reports whether both templates are the same in every field.
func (t *Template) Equal(u *Template) bool {
	return maps.Equal(t.Labels, u.Labels) && maps.Equal(t.Annotations, u.Annotations) && t.Spec.Equal(&u.Spec)
}

// CopyStatus implements object.Object.
func (s *Set) CopyStatus(from *Set) { s.Status = from.Status.Clone() }

// Clone returns a copy that shares nothing with s.
func (s *Status) Clone() Status {
	c := *s
	c.Conditions = slices.Clone(s.Conditions)
	c.Failed = slices.Clone(s.Failed)
	return c
}

// Equal reports whether both are the same. Times are compared as instants.
func (s *Status) Equal(t *Status) bool {
	return s.Replicas == t.Replicas && s.FullyLabeled == t.FullyLabeled && s.Ready == t.Ready &&
		s.Available == t.Available && s.Preserved == t.Preserved && s.PreservedFailed == t.PreservedFailed && s.AutoPreserved == t.AutoPreserved && s.Failing == t.Failing &&
		s.ObservedGeneration == t.ObservedGeneration &&
		sameOperation(&s.LastOperation, &t.LastOperation) && s.CrashLoop.Equal(&t.CrashLoop) &&
		slices.EqualFunc(s.Conditions, t.Conditions, sameCondition) &&
		slices.EqualFunc(s.Failed, t.Failed, func(a, b FailedMachine) bool { return a.Equal(&b) })
}

// Equal reports whether both are the same. Times are compared as instants.
func (s *FailedMachine) Equal(t *FailedMachine) bool {
	return s.Name == t.Name && s.ProviderID == t.ProviderID && s.Owner == t.Owner &&
		sameOperation(&s.LastOperation, &t.LastOperation)
}

// sameOperation compares times as instants: a store may return them in another
// location.
func sameOperation(a, b *machine.Operation) bool {
	c := *b
	c.Time = a.Time
	return *a == c && a.Time.Equal(b.Time)
}

func sameCondition(a, b object.Condition) bool {
	since := b.Since
	b.Since = a.Since
	return a == b && a.Since.Equal(since)
}

// SpecEqual implements object.Object. Instructions that count as spec are compared too.
func (s *Set) SpecEqual(t *Set) bool {
	a, b := &s.Spec, &t.Spec
	return a.Replicas == b.Replicas && a.MinReady == b.MinReady && a.MaxAge == b.MaxAge && a.AutoPreserve == b.AutoPreserve &&
		s.Instructions.specEqual(&t.Instructions) && a.Selector.Equal(&b.Selector) && a.Template.Equal(&b.Template)
}

// CrashLoop counts the failures of machines that were never ready. The zero value:
// no machine has failed like this since the last one became ready.
type CrashLoop struct {
	// Rounds is how many rounds of machines failed in a row. A machine that was created
	// before the failure that began a round belongs to that round.
	Rounds int32
	// UpTo is the highest number that was given out when the last round was
	// counted. A failure of a machine with a higher number begins another round.
	UpTo int64
	// Last is when a failure was last recorded. Whole seconds.
	Last time.Time
	// Missing is how many machines were missing then, including those that failed.
	Missing int32
	// Against are the versions of class and secrets that the machines failed with.
	// If a version changes, the count begins again.
	Against machine.Inputs
}

// Equal reports whether both are the same. Times are compared as instants.
func (c *CrashLoop) Equal(d *CrashLoop) bool {
	e := *d
	e.Last = c.Last
	return *c == e && c.Last.Equal(d.Last)
}

// tryAt returns the end of a wait after the last failure. It adds a second, because Last is in whole seconds.
func (c *CrashLoop) tryAt(wait time.Duration) time.Time { return c.Last.Add(wait + time.Second) }

// ConditionPaused is True while a set is paused. A set that is resumed removes it before it gives any order.
// So while it is True, the set is deleting no machine, even if it was resumed and paused again.
const ConditionPaused = machine.ConditionPaused

// withCondition returns conditions with c among them. If c is there already, with any Since, it returns the same
// slice, otherwise a new one.
func withCondition(conditions []object.Condition, c object.Condition) []object.Condition {
	have := object.FindCondition(conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return conditions
	}
	return object.SetCondition(conditions, c)
}

// withoutCondition returns conditions without those of a type. If there are none, it returns the same slice.
func withoutCondition(conditions []object.Condition, typ string) []object.Condition {
	if object.FindCondition(conditions, typ) == nil {
		return conditions
	}
	return object.DropCondition(conditions, typ)
}

// hasPreviousClass reports whether a machine has a class that the template had before. If so, the machine gets
// the template's present class.
func (s *Set) hasPreviousClass(have *machine.ClassRef) bool {
	want := &s.Spec.Template.Spec.Class
	return have.Name != want.Name && have.APIGroup == want.APIGroup && slices.Contains(s.Instructions.PreviousClasses, have.Name)
}

// Validate returns an *object.FieldError for the first invalid field, or else for the first entry of the node
// template that no API server accepts. With such an entry a set creates no machine.
func (s *Set) Validate() error {
	err := s.invalidField()
	if err == nil {
		err = s.Spec.Template.InvalidEntry()
	}
	if err == nil {
		return nil
	}
	return err.Of("set", s.Key)
}

func (s *Set) invalidField() *object.FieldError {
	switch r := &s.Instructions.Reservation; {
	case s.Name == "":
		return object.Invalid("metadata.name", "must not be empty")
	case s.UID == "":
		return object.Invalid("metadata.uid", "must not be empty")
	case s.Spec.Replicas < 0:
		return object.Invalid("spec.replicas", "must not be negative")
	case s.Spec.AutoPreserve < 0:
		return object.Invalid("spec.autoPreserve", "must not be negative")
	case s.Spec.MinReady < 0:
		return object.Invalid("spec.minReady", "must not be negative")
	case s.Spec.MaxAge < 0:
		return object.Invalid("spec.maxAge", "must not be negative")
	case s.Spec.MaxAge > 0 && s.Spec.MaxAge < time.Minute:
		return object.Invalid("spec.maxAge", "must be at least a minute")
	case r.Settled < 0 || r.Reserved < r.Settled || r.Reserved > maxOrdinal:
		return object.Invalid("reservation", "holds numbers that no process can have written")
	}
	if bad := s.Spec.invalidSelector(); bad != nil {
		return bad
	}
	return s.Spec.Template.invalidField()
}

// AboveLimit returns an error if a size is above a policy's limit. Nil: it is not. If the limit is zero or
// object.Off, there is none.
func AboveLimit(replicas, limit int32) *object.FieldError {
	if limit <= 0 || replicas <= limit {
		return nil
	}
	return object.Invalid("spec.replicas", "must be at most "+strconv.Itoa(int(limit))+", the policy's limit, and is "+strconv.Itoa(int(replicas)))
}

func (s *Spec) invalidSelector() *object.FieldError {
	const field = "spec.selector"
	if s.Selector.Empty() {
		return object.Invalid(field, "must not be empty")
	}
	if err := s.Selector.Validate(field); err != nil {
		var bad *object.FieldError
		if !errors.As(err, &bad) {
			bad = object.Invalid(field, err.Error())
		}
		return bad
	}
	if !s.Selector.Matches(s.Template.Labels) {
		return object.Invalid("spec.template.labels", "must match spec.selector")
	}
	return nil
}

// InvalidEntry returns the first entry of the node template that no API server
// accepts on a node, or nil: see machine.NodeTemplate.InvalidEntry.
func (t *Template) InvalidEntry() *object.FieldError {
	return t.Spec.NodeTemplate.InvalidEntry("spec.template.spec.nodeTemplate")
}

func (t *Template) invalidField() *object.FieldError {
	switch {
	case t.Spec.Class.Name == "":
		return object.Invalid("spec.template.spec.class.name", "must not be empty")
	case t.Spec.ProviderID != "":
		return object.Invalid("spec.template.spec.providerID", "must be empty: it is one machine's")
	case t.Spec.NodeName != "":
		return object.Invalid("spec.template.spec.nodeName", "must be empty: it is one machine's")
	case t.Spec.InPlace != machine.InPlaceNone:
		return object.Invalid("spec.template.spec.inPlace", "must be empty: it is one machine's")
	}
	return t.Spec.Config.InvalidField("spec.template.spec.config")
}
