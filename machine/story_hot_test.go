package machine_test

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// spec is a provider spec of the model: a size, and tags as key and value.
func spec(size string, tags ...string) string {
	text := `{"size":"` + size + `","tags":{`
	for i := 0; i < len(tags); i += 2 {
		if i > 0 {
			text += ","
		}
		text += `"` + tags[i] + `":"` + tags[i+1] + `"`
	}
	return text + "}}"
}

// becomes changes the class as its owner does.
func (w *world) becomes(spec string) {
	changed := w.class.Clone()
	changed.ProviderSpec = []byte(spec)
	changed.Generation++
	w.class = changed
}

// tagged brings a machine to Running whose driver can change tags.
func (s *story) tagged(change ...func(*machine.Machine)) {
	s.fields = []string{"tags"}
	s.becomes(spec("s", "team", "a"))
	s.toRunning(change...)
}

func ownedBySet(m *machine.Machine) {
	m.Owner = &object.Owner{Kind: "MachineSet", Name: "set-1", UID: "set-1"}
}

var hotStories = map[string]func(*story){
	"VM gets other tags": func(s *story) {
		s.tagged()
		s.provider.note = "tagged"
		s.becomes(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change")
		s.later(time.Hour, "an hour later")
		s.say("the tags of the VM: %v", s.provider.vms[0].tags)
	},
	"VM stays as its class changes otherwise": func(s *story) {
		s.tagged()
		s.becomes(spec("m", "team", "b"))
		s.later(time.Minute, "size and tags in the class change")
		s.becomes(spec("s", "team", "b"))
		s.later(time.Minute, "the size is as it was")
	},
	"VM cannot be reached for its tags": func(s *story) {
		s.tagged()
		s.failing(codes.UpdateMachine, codes.Unavailable, false)
		s.becomes(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change, the provider does not answer")
		s.later(time.Second, "something else wakes it")
		s.wait()
		s.failing(codes.UpdateMachine, codes.OK, false)
		s.later(time.Minute, "the provider answers again")
	},
	"tags that are refused until they are right": func(s *story) {
		s.tagged()
		s.failing(codes.UpdateMachine, codes.InvalidArgument, false)
		s.becomes(spec("s", "team", "no such team"))
		s.later(time.Minute, "the tags in the class become something that is not allowed")
		s.failing(codes.UpdateMachine, codes.OK, false)
		s.becomes(spec("s", "team", "c"))
		s.later(time.Second, "they are corrected")
	},
	"VM that cannot be changed is replaced": func(s *story) {
		s.tagged(ownedBySet)
		s.failing(codes.UpdateMachine, codes.Unimplemented, false)
		s.becomes(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change, and the driver can't do that after all")
		s.later(time.Hour, "an hour later")
	},
	"VM that cannot be changed and has no set": func(s *story) {
		s.tagged()
		s.failing(codes.UpdateMachine, codes.Unimplemented, false)
		s.becomes(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change, and the driver can't do that after all")
		s.later(time.Hour, "an hour later")
	},
	"VM to be changed is gone": func(s *story) {
		s.tagged()
		s.provider.vms = nil
		s.becomes(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change, and somebody has deleted the VM")
		s.later(time.Hour, "an hour later")
		s.cluster.ready(node, object.Unknown)
		s.later(time.Minute, "its node falls silent")
	},
	"lost response to an update of tags taken back": func(s *story) {
		s.tagged()
		s.failing(codes.UpdateMachine, codes.DeadlineExceeded, true)
		s.becomes(spec("s", "team", "b", "extra", "yes"))
		s.later(time.Minute, "the tags in the class change; the answer is lost")
		s.failing(codes.UpdateMachine, codes.OK, false)
		s.becomes(spec("s", "team", "a"))
		s.later(time.Second, "the tags in the class are what they were")
		s.say("the tags of the VM: %v", s.provider.vms[0].tags)
	},
	"crash amid an update of tags": func(s *story) {
		s.tagged()
		s.becomes(spec("s", "team", "b"))
		s.killAt, s.after = s.calls+2, true
		s.later(time.Minute, "the tags in the class change")
		s.restart()
		s.later(time.Second, "")
	},
	"stale reader of tags": func(s *story) {
		s.tagged()
		s.becomes(spec("s", "team", "b"))
		old := s.class
		s.later(time.Minute, "the tags in the class change")
		s.becomes(spec("s", "team", "c"))
		s.later(time.Minute, "and again")
		s.shell = &shell{w: s.world, told: s.step, lag: func() int { return 4 }}
		s.seen = func() *machine.Class { return old }
		s.say("a second process reads class and machine as they were before")
		_, _, _ = s.shell.reconcile()
		s.seen, s.shell.lag = nil, nil
		s.later(time.Second, "its caches catch up")
		s.say("the tags of the VM: %v", s.provider.vms[0].tags)
	},
	"VM waits for its turn to get other tags": func(s *story) {
		s.tagged()
		s.turn = func(*machine.Machine) *machine.UpdateTurn {
			return &machine.UpdateTurn{Detail: "no more than 1 of web at a time"}
		}
		s.becomes(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change while other VMs are changed")
		s.turn = nil
		s.wait()
	},
	"tags change while the machine is unhealthy": func(s *story) {
		s.tagged()
		s.cluster.ready(node, object.Unknown)
		s.later(0, "the kubelet stops reporting")
		s.becomes(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change")
		s.cluster.ready(node, object.True)
		s.later(time.Minute, "the kubelet reports again")
	},
	"driver learns to change tags": func(s *story) {
		s.becomes(spec("s", "team", "a"))
		s.toRunning()
		s.fields = []string{"tags"}
		s.later(time.Hour, "a new version of the driver can change tags")
		s.becomes(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change")
		s.fields = []string{"tags", "size"}
		s.later(time.Hour, "the next version can change sizes too")
		s.later(time.Minute, "")
	},
	"tags without cluster": func(s *story) {
		s.cluster, s.fields = nil, []string{"tags"}
		s.becomes(spec("s", "team", "a"))
		s.give()
		s.run()
		s.becomes(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change")
	},
	"tags change before a create is repeated": func(s *story) {
		s.fields = []string{"tags"}
		s.becomes(spec("s", "team", "a"))
		s.provider.noStatus = true
		s.failing(codes.CreateMachine, codes.DeadlineExceeded, true)
		s.give()
		s.run()
		s.becomes(spec("s", "team", "b"))
		s.failing(codes.CreateMachine, codes.OK, false)
		s.later(time.Second, "the tags in the class change before the create is repeated")
		s.later(time.Minute, "the node joins")
		s.later(time.Second, "")
		s.say("the tags of the VM: %v", s.provider.vms[0].tags)
	},
}
