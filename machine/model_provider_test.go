package machine_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// vm is a VM at the provider.
type vm struct {
	id, name, node string
	initialized    bool
	visibleAt      time.Time // for status calls
	boots          bool      // it will register a node
	bootAt         time.Time
	joined         bool
	unhealthy      string
	tags           map[string]string
	token          int // that it was made with
}

// fault is how one call goes wrong: with an answer, after its effect or instead of it.
type fault struct {
	code codes.Code
	done bool
}

// providerModel is a provider and its driver.
type providerModel struct {
	w   *world
	vms []*vm

	atomic    bool              // one VM a name, even if status calls do not show it
	lag       time.Duration     // after which status calls show a VM
	boot      time.Duration     // after which a VM registers its node; negative: never
	noStatus  bool              // GetMachineStatus answers UNIMPLEMENTED
	hasInit   bool              // InitializeMachine is implemented
	differs   bool              // a VM of the name exists and is not what is asked for
	nameless  bool              // status answers have no node name
	bare      bool              // UNINITIALIZED comes without a response
	anonymous bool              // InitializeMachine is answered without ID and node name
	blank     func(*machine.VM) // what create leaves out of its answer; may be nil
	note      string
	addresses []machine.Address
	nodeName  string // of every VM; empty: "node-" and the machine's name
	faults    func(codes.Call) fault

	class     *machine.Class // that the call at hand comes with
	token     int            // likewise
	made      int
	deletedOK bool // a delete of our machine was answered OK or NOT_FOUND
	// mayHaveMade: a create was not answered with a refusal after which nothing was made.
	mayHaveMade bool
	calls       map[codes.Call]int
}

// call makes one driver call about a machine.
func (p *providerModel) call(call codes.Call, m *machine.Machine, id string, do func(*machine.Machine, string) machine.VM) machine.VM {
	require.True(p.w.t, m.HasFinalizer(machine.Finalizer), "P11: a call without our finalizer")
	p.calls[call]++
	note := p.note
	if call == codes.GetMachineStatus {
		note = "" // a call that only looks has nothing to note
	}
	var f fault
	if p.faults != nil {
		f = p.faults(call)
	}
	created := call == codes.CreateMachine
	if f.code == codes.OK || f.done {
		answer := do(m, id)
		p.mayHaveMade = p.mayHaveMade || created && answer.Code != codes.AlreadyExists
		if f.code == codes.OK {
			answer.LastKnown = note
			return answer
		}
	}
	p.mayHaveMade = p.mayHaveMade || created && !slices.Contains(refusals, f.code)
	return machine.VM{Outcome: failed(f.code), LastKnown: note}
}

// refusals are the codes after which a create has made nothing.
var refusals = []codes.Code{
	codes.InvalidArgument, codes.AlreadyExists, codes.PermissionDenied, codes.ResourceExhausted, codes.Unauthenticated, codes.Unimplemented,
}

func failed(code codes.Code) machine.Outcome {
	return machine.Outcome{Code: code, Message: "the model was told to fail"}
}

func (p *providerModel) create(m *machine.Machine, _ string) machine.VM {
	if p.differs {
		return machine.VM{Outcome: machine.Outcome{Code: codes.AlreadyExists, Message: "another VM has this name"}}
	}
	var found *vm
	for _, v := range p.vms {
		if v.name == m.Name && (p.atomic || !p.w.now.Before(v.visibleAt)) {
			found = v
		}
	}
	if found == nil {
		p.made++
		found = &vm{
			id: "p://" + strconv.Itoa(p.made), name: m.Name, node: p.nodeName, initialized: !p.hasInit,
			visibleAt: p.w.now.Add(p.lag), boots: p.boot >= 0, bootAt: p.w.now.Add(p.boot),
			token: p.token,
		}
		if found.node == "" {
			found.node = "node-" + m.Name
		}
		found.tags, _ = tagsOf(p.class.ProviderSpec)
		p.vms = append(p.vms, found)
	}
	if p.atomic {
		require.LessOrEqual(p.w.t, len(p.named(m.Name)), 1, "P13: two live VMs")
	}
	answer := p.describe(found)
	if p.blank != nil {
		p.blank(&answer)
	}
	return answer
}

func (p *providerModel) describe(v *vm) machine.VM {
	return machine.VM{ProviderID: v.id, NodeName: v.node, Addresses: p.addresses}
}

func (p *providerModel) status(m *machine.Machine, _ string) machine.VM {
	if p.noStatus {
		return machine.VM{Outcome: machine.Outcome{Code: codes.Unimplemented}}
	}
	var seen []*vm
	for _, v := range p.vms {
		mine := v.name == m.Name && m.Spec.ProviderID == "" || v.id == m.Spec.ProviderID
		if mine && !p.w.now.Before(v.visibleAt) {
			seen = append(seen, v)
		}
	}
	switch len(seen) {
	case 0:
		return machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
	case 1:
	default:
		return machine.VM{Outcome: machine.Outcome{Code: codes.OutOfRange, Message: "several VMs have this name"}}
	}
	answer := p.describe(seen[0])
	answer.Unhealthy = seen[0].unhealthy
	if p.nameless {
		answer.NodeName = ""
	}
	if !seen[0].initialized {
		answer.Outcome = machine.Outcome{Code: codes.Uninitialized, Message: "not initialized yet"}
		if p.bare {
			answer = machine.VM{Outcome: answer.Outcome}
		}
	}
	return answer
}

func (p *providerModel) initialize(m *machine.Machine, _ string) machine.VM {
	if !p.hasInit {
		return machine.VM{Outcome: machine.Outcome{Code: codes.Unimplemented}}
	}
	for _, v := range p.vms {
		if v.id == m.Spec.ProviderID || m.Spec.ProviderID == "" && v.name == m.Name {
			v.initialized = true
			answer := p.describe(v)
			if p.anonymous {
				answer.ProviderID, answer.NodeName = "", ""
			}
			return answer
		}
	}
	return machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
}

// remove deletes the VM with an ID, if one is given or recorded, or else all of the name.
func (p *providerModel) remove(m *machine.Machine, id string) machine.VM {
	if id == "" {
		id = m.Spec.ProviderID
	}
	kept := p.vms[:0:0]
	for _, v := range p.vms {
		if id != "" && v.id != id || id == "" && v.name != m.Name {
			kept = append(kept, v)
		}
	}
	absent := len(kept) == len(p.vms)
	p.vms = kept
	if absent {
		return machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
	}
	return machine.VM{}
}

// alive are the VMs a machine answers for: the recorded one, or those of its name.
func (p *providerModel) alive(m *machine.Machine) []string {
	var ids []string
	for _, v := range p.vms {
		if v.id == m.Spec.ProviderID || v.name == m.Name && (p.atomic || m.Spec.ProviderID == "") {
			ids = append(ids, v.id)
		}
	}
	return ids
}

func (p *providerModel) named(name string) []string {
	var ids []string
	for _, v := range p.vms {
		if v.name == name {
			ids = append(ids, v.id)
		}
	}
	return ids
}

// update brings a VM's tags from those of one spec to those of another. Tags of
// neither are somebody else's.
func (p *providerModel) update(m *machine.Machine, lastApplied string) machine.VM {
	if p.w.fields == nil {
		return machine.VM{Outcome: machine.Outcome{Code: codes.Unimplemented}}
	}
	last, lastFixed := tagsOf([]byte(lastApplied))
	want, fixed := tagsOf(p.class.ProviderSpec)
	require.Equal(p.w.t, lastFixed, fixed, "P4: an update of what can't be updated")
	for _, v := range p.vms {
		if v.id != m.Spec.ProviderID {
			continue
		}
		for k := range last {
			delete(v.tags, k)
		}
		if v.tags == nil {
			v.tags = map[string]string{}
		}
		for k, value := range want {
			v.tags[k] = value
		}
		return machine.VM{}
	}
	return machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
}

// tagsOf reads the specs of the model: what can be updated, and the rest.
func tagsOf(spec []byte) (tags map[string]string, fixed string) {
	var read struct {
		Size string            `json:"size"`
		Tags map[string]string `json:"tags"`
	}
	if json.Unmarshal(spec, &read) != nil {
		return nil, string(spec)
	}
	return read.Tags, read.Size
}
