package machine_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// refuse has an effect on the cluster fail from now on; codes.OK: no more.
func (s *story) refuse(effect string, code codes.Code) {
	s.cluster.faults = func(e string) codes.Code {
		if e == effect {
			return code
		}
		return codes.OK
	}
}

// waits lets passes follow each other for as long as the machine waits for a
// time and is there.
func (s *story) waits(most int) {
	for range most {
		if s.last.At.IsZero() || s.store.live() == nil {
			return
		}
		s.wait()
	}
}

// silenced has a machine with such pods be deleted, and its kubelet fall silent amid
// its drain.
func (s *story) silenced(pods int) *drainModel {
	s.toRunning()
	d := s.drains(pods, time.Hour, 0)
	s.doomed()
	s.run()
	s.cluster.ready(node, object.Unknown)
	s.later(time.Minute, "the kubelet stops reporting")
	return d
}

// drainStories are about the pods and volumes of a node that goes.
var drainStories = map[string]func(*story){
	"drain of an empty node": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 0)
		s.doomed()
		s.run()
	},
	"drain that takes its time": func(s *story) {
		s.toRunning()
		s.drains(3, 30*time.Second, 0)
		s.doomed()
		s.run()
		s.waits(5)
	},
	"drain that a budget holds up until a pod moves": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1)
		s.doomed()
		s.run()
		s.later(10*time.Minute, "somebody looks")
		s.cluster.drain.stuck = 0
		s.later(time.Minute, "the budget allows it")
	},
	"drain that is forced when its time is up": func(s *story) {
		s.toRunning()
		d := s.drains(0, 0, 2)
		d.volumes, d.held = 1, 40*time.Second
		s.doomed()
		s.run()
		s.waits(5)
	},
	"drain forced by label": func(s *story) {
		s.toRunning()
		s.drains(2, time.Minute, 1)
		s.doomed()
		s.run()
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.later(time.Second, "the label force-deletion is set")
	},
	"drain forced by a node that does not answer": func(s *story) {
		s.silenced(2)
		s.waits(3)
	},
	"drain not forced by what a cache still says": func(s *story) {
		s.silenced(2)
		s.cluster.ready(node, object.True)
		machines := true
		s.shell.lag = func() (lag int) {
			if machines = !machines; machines {
				lag = 1 // of the node
			}
			return lag
		}
		s.later(5*time.Minute, "the kubelet reports again; the cache does not know")
	},
	"node that answers again before its volumes are detached": func(s *story) {
		d := s.silenced(1)
		d.volumes, d.held = 1, time.Hour
		s.wait()
		s.cluster.ready(node, object.True)
		s.later(time.Minute, "the kubelet reports again")
		d.volumes = 0
		s.later(time.Second, "it has let go of them")
	},
	"detachment that has had its time needs no word of the node": func(s *story) {
		d := s.silenced(1)
		d.volumes, d.held = 1, time.Hour
		s.waits(2)
	},
	"drain that fails and is tried again": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 0)
		s.refuse("DrainNode", codes.Unavailable)
		s.doomed()
		s.run()
		s.wait()
		s.refuse("", codes.OK)
		s.say("the cluster answers again")
		s.wait()
	},
	"cluster away for longer than the drain timeout": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1).volumes = 1
		s.doomed()
		s.run()
		s.cluster.away = true
		s.later(time.Hour, "the API server of the nodes does not answer")
		s.later(time.Hour+time.Second, "it has not answered for an hour; the manager has tried again every 3 min")
		s.wait()
		s.later(2*time.Minute, "it still does not answer, and the volumes have had their time")
		s.cluster.away = false
		s.later(time.Minute, "it answers again")
	},
	"drain that fails even by force": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1)
		s.refuse("DrainNode", codes.PermissionDenied)
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
	},
	"drain that does not end even by force": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1).wedged = true
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
		s.later(30*time.Second, "somebody looks")
		s.waits(2)
	},
	"volumes that are not detached in time": func(s *story) {
		s.toRunning()
		d := s.drains(0, 0, 1)
		d.volumes, d.held = 2, time.Hour
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
		s.waits(3)
	},
	"volumes that nobody may detach": func(s *story) {
		s.toRunning()
		d := s.drains(0, 0, 1)
		d.volumes, d.held, d.refused = 1, time.Hour, "attachment a could not be deleted: no leave to delete"
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
	},
	"volumes whose detaching fails": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1).volumes = 1
		s.refuse("DetachVolumes", codes.Unavailable)
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
		s.refuse("", codes.OK)
		s.say("the cluster answers again")
		s.wait()
	},
	"node goes while its volumes are detached": func(s *story) {
		s.toRunning()
		d := s.drains(0, 0, 1)
		d.volumes, d.held = 1, time.Hour
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
		s.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
		s.cluster.delete(node)
		s.later(time.Second, "somebody deletes the node, finalizer and all")
	},
	"node that a cache does not show is drained": func(s *story) {
		s.toRunning()
		s.drains(1, time.Minute, 0)
		s.doomed()
		s.shell.lag = func() int { return 100 }
		s.cluster.nodes[node] = append([]*machine.Node{nil}, s.cluster.nodes[node]...)
		m := s.store.live()
		s.store.versions = []*machine.Machine{m}
		s.say("the cache does not show the node")
		s.run()
	},
	"crash while a node is drained": func(s *story) {
		s.toRunning()
		s.drains(2, time.Minute, 0)
		s.doomed()
		s.killAt, s.after = s.calls+4, true
		s.run()
		s.restart()
		s.run()
		s.waits(4)
		require.Nil(s.t, s.store.live())
	},
}
