package driver

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Subject says which call is made, and about what. It can be shown anywhere.
type Subject struct {
	Method  codes.Call
	Machine object.Key // zero: the call is about no single machine
	Class   object.Key // zero: the call has no class
}

// request is any of the eight kinds of request. A nil one has content too.
type request interface{ content() content }

// content is what a request is about. A nil request has the method only.
type content struct {
	method    codes.Call
	there     bool // the request is not nil
	ofMachine bool // a machine belongs into this kind
	ofClass   bool // a class belongs into this kind
	machine   *machine.Machine
	class     *machine.Class
	secret    *machine.Secret // nil: there is none
}

func (c content) subject() Subject {
	s := Subject{Method: c.method}
	if c.machine != nil {
		s.Machine = c.machine.Key
	}
	if c.class != nil {
		s.Class = c.class.Key
	}
	return s
}

// gap says what is missing without which the call can't be made; empty: nothing.
func (c content) gap() string {
	switch {
	case !c.there:
		return "there is no request"
	case c.ofMachine && c.machine == nil:
		return "the request has no machine"
	case c.ofMachine && c.machine.Name == "":
		return "the machine has no name"
	case c.ofClass && c.class == nil:
		return "the class is missing"
	}
	return ""
}

func ofMachine(method codes.Call, m *machine.Machine, c *machine.Class, s *machine.Secret) content {
	return content{method: method, there: true, ofMachine: true, ofClass: true, machine: m, class: c, secret: s}
}

func ofClass(method codes.Call, c *machine.Class, s *machine.Secret) content {
	return content{method: method, there: true, ofClass: true, class: c, secret: s}
}

func (r *CreateMachineRequest) content() content {
	if r == nil {
		return content{method: codes.CreateMachine}
	}
	return ofMachine(codes.CreateMachine, r.Machine, r.Class, r.Secret)
}

func (r *InitializeMachineRequest) content() content {
	if r == nil {
		return content{method: codes.InitializeMachine}
	}
	return ofMachine(codes.InitializeMachine, r.Machine, r.Class, r.Secret)
}

func (r *DeleteMachineRequest) content() content {
	if r == nil {
		return content{method: codes.DeleteMachine}
	}
	return ofMachine(codes.DeleteMachine, r.Machine, r.Class, r.Secret)
}

func (r *GetMachineStatusRequest) content() content {
	if r == nil {
		return content{method: codes.GetMachineStatus}
	}
	return ofMachine(codes.GetMachineStatus, r.Machine, r.Class, r.Secret)
}

func (r *ListMachinesRequest) content() content {
	if r == nil {
		return content{method: codes.ListMachines}
	}
	return ofClass(codes.ListMachines, r.Class, r.Secret)
}

func (r *GetVolumeIDsRequest) content() content {
	if r == nil {
		return content{method: codes.GetVolumeIDs}
	}
	return content{method: codes.GetVolumeIDs, there: true}
}

func (r *GenerateMachineClassForMigrationRequest) content() content {
	if r == nil {
		return content{method: codes.GenerateMachineClassForMigration}
	}
	return ofClass(codes.GenerateMachineClassForMigration, r.Class, nil)
}

func (r *UpdateMachineRequest) content() content {
	if r == nil {
		return content{method: codes.UpdateMachine}
	}
	return ofMachine(codes.UpdateMachine, r.Machine, r.Class, r.Secret)
}
