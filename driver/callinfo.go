package driver

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Method names a call. For Driver it is a codes.Call; another interface has a type of its own. The
// types are comparable, so the methods of several interfaces can be keys of one map.
type Method interface{ String() string }

// CallInfo says which call is made, and about what. It contains nothing confidential.
type CallInfo struct {
	Method Method     // never nil
	Kind   string     // what the interface manages: "machine"
	Object object.Key // of that kind; zero: the call is not about a single object
	Class  object.Key // zero: the call has no class
	// ReadOnly reports whether the call changes nothing, as its contract says.
	ReadOnly bool
}

// request is any of the eight kinds of request. content works for a nil request, too.
type request interface{ content() content }

// content is what a request is about. A nil request has the method only.
type content struct {
	method    codes.Call
	given     bool // the request is not nil
	ofMachine bool // the call is about a machine
	ofClass   bool // the call is about a class
	machine   *machine.Machine
	class     *machine.Class
	secret    *machine.Secret // nil: there is none
}

func (c content) info() CallInfo {
	info := CallInfo{Method: c.method, Kind: "machine", ReadOnly: readOnly(c.method)}
	if c.machine != nil {
		info.Object = c.machine.Key
	}
	if c.class != nil {
		info.Class = c.class.Key
	}
	return info
}

func readOnly(call codes.Call) bool {
	switch call {
	case codes.GetMachineStatus, codes.ListMachines, codes.GetVolumeIDs, codes.GenerateMachineClassForMigration:
		return true
	case codes.CreateMachine, codes.InitializeMachine, codes.DeleteMachine, codes.UpdateMachine:
	}
	return false
}

// missingField returns what the request lacks for the call. Empty: nothing.
func (c content) missingField() string {
	switch {
	case !c.given:
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
	return content{method: method, given: true, ofMachine: true, ofClass: true, machine: m, class: c, secret: s}
}

func ofClass(method codes.Call, c *machine.Class, s *machine.Secret) content {
	return content{method: method, given: true, ofClass: true, class: c, secret: s}
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
	return content{method: codes.GetVolumeIDs, given: true}
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
