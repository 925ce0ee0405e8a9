package bolt

import (
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// form is how a record holds an object whose Go type has other fields.
type form[T any] interface {
	// from takes the fields over from an object. Both share what these point to.
	from(T)
	// object returns an object of these fields. Both share what these point to.
	object() T
}

// setForm is a set as a record holds it. The names and the order of its fields are those of the
// layout: they do not follow the names in package machineset.
type setForm struct {
	object.Meta
	Reservation machineset.Reservation
	Handover    machineset.Handover
	Revision    int64
	Spec        setFormSpec
	Status      setFormStatus
}

type setFormSpec struct {
	Replicas     int32
	Selector     object.Selector
	Template     machineset.Template
	MinReady     time.Duration
	Marks        machine.RolloutMarks
	Victims      []machineset.DeletionCandidate
	MaxAge       time.Duration
	Former       []string
	Slack        machineset.SurgeAllowance
	AutoPreserve int32
}

// setFormStatus has the fields of machineset.Status in their order, so that one converts to the other.
type setFormStatus struct {
	Replicas           int32
	FullyLabeled       int32
	Ready              int32
	Available          int32
	Preserved          int32
	PreservedFailed    int32
	AutoPreserved      int32
	ObservedGeneration int64
	Conditions         []object.Condition
	Failed             []machineset.FailedMachine
	Failing            int32
	LastOperation      machine.Operation
	CrashLoop          machineset.CrashLoop `json:"Churn"`
}

func (f *setForm) from(s *machineset.Set) {
	i := &s.Instructions
	*f = setForm{
		Meta: s.Meta, Reservation: i.Reservation, Handover: i.Handover, Revision: s.Revision,
		Spec: setFormSpec{
			Replicas: s.Spec.Replicas, Selector: s.Spec.Selector, Template: s.Spec.Template,
			MinReady: s.Spec.MinReady, MaxAge: s.Spec.MaxAge, AutoPreserve: s.Spec.AutoPreserve,
			Marks: i.Marks, Victims: i.DeletionCandidates, Former: i.PreviousClasses, Slack: i.SurgeAllowance,
		},
		Status: setFormStatus(s.Status),
	}
}

func (f *setForm) object() *machineset.Set {
	return &machineset.Set{
		Meta: f.Meta, Revision: f.Revision,
		Instructions: machineset.Instructions{
			Reservation: f.Reservation, Handover: f.Handover, Marks: f.Spec.Marks, DeletionCandidates: f.Spec.Victims,
			PreviousClasses: f.Spec.Former, SurgeAllowance: f.Spec.Slack,
		},
		Spec: machineset.Spec{
			Replicas: f.Spec.Replicas, Selector: f.Spec.Selector, Template: f.Spec.Template,
			MinReady: f.Spec.MinReady, MaxAge: f.Spec.MaxAge, AutoPreserve: f.Spec.AutoPreserve,
		},
		Status: machineset.Status(f.Status),
	}
}
