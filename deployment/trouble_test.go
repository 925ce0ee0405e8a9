package deployment_test

import (
	"testing"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

func bothZero(t *testing.T) *story {
	d := web(2)
	d.Spec.Strategy = deployment.Strategy{Kind: deployment.RollingUpdate}
	s := settled(t, d)
	s.say("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.follow(3)
	return s
}

func over100(t *testing.T) *story {
	d := web(2)
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: 200, Percent: true}
	s := settled(t, d)
	s.say("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.follow(2)
	return s
}

func specInvalid(t *testing.T) *story {
	s := settled(t, web(3))
	s.say("fewer than no machines are wanted")
	s.edit(replicas(-1))
	s.decide()
	s.say("a machine goes meanwhile")
	s.pass(time.Minute)
	s.deleteMachine(s.running(0))
	s.decide()
	s.say("3 are wanted again")
	s.pass(time.Minute)
	s.edit(replicas(3))
	s.decide()
	return s
}

func selectingAll(t *testing.T) *story {
	d := web(3)
	d.Spec.Selector = object.Selector{}
	s := newStory(t, d)
	s.orphan("stray", "small", 2)
	s.decide()
	s.say("nothing happens")
	s.pass(time.Minute)
	s.decide()
	return s
}

// orphan is a set without an owner, with this many machines running.
func (s *story) orphan(name, class string, n int) *machineset.Set {
	spec := web(0).Spec.Template
	spec.Spec.Class.Name = class
	set := &machineset.Set{}
	set.Namespace, set.Name, set.Labels = namespace, name, map[string]string{"app": "web"}
	set.Instructions.Reservation = machineset.Reservation{Settled: int64(n), Reserved: int64(n)}
	set.Spec = machineset.Spec{Replicas: int32(n), Selector: web(0).Spec.Selector.Clone(), Template: spec}
	stored, err := s.createSet(set)
	if err != nil {
		s.shell.t.Fatalf("orphan %s: %v", name, err)
	}
	for i := range n {
		s.addMachine(stored, stored.MachineName(int64(i+1)), machine.PhaseRunning)
	}
	return stored
}

func adopt(t *testing.T) *story {
	s := newStory(t, web(3))
	s.deployment.CreatedAt = begin.Add(time.Minute) // it comes to machines that are there
	s.orphan("web-legacy", "small", 2)
	s.orphan("web-older", "tiny", 1)
	s.decide()
	s.follow(2)
	return s
}

func release(t *testing.T) *story {
	s := settled(t, web(2))
	s.say("somebody takes the label off the set that the deployment selects")
	s.changeSet(s.sets[0].Name, func(set *machineset.Set) { set.Labels = map[string]string{"app": "kept aside"} })
	s.decide()
	s.follow(2)
	return s
}

func nameTaken(t *testing.T) *story {
	probe := settled(t, web(1))
	s := newStory(t, web(1))
	taken := s.orphan(probe.sets[0].Name, "small", 0)
	s.changeSet(taken.Name, func(set *machineset.Set) {
		set.Owner = &object.Owner{Kind: "Other", Name: "other", UID: "other"}
	})
	s.say("a set that belongs to something else has the name")
	s.decide()
	s.follow(1)
	return s
}

func nameTakenMeanwhile(t *testing.T) *story {
	s := newStory(t, web(1))
	s.say("a create by a process that is gone arrives between the live read and the create")
	s.shell.issue = func(kind string, order deployment.Order, _ *deployment.Deployment) {
		if kind == "create" {
			s.shell.issue = nil
			if _, err := s.createSet(order.Set); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.decide()
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	return s
}

func nameFree(t *testing.T) *story {
	s := newStory(t, web(1))
	s.say("the name is answered to be taken, but nothing is found under it")
	s.shell.issue = func(kind string, order deployment.Order, _ *deployment.Deployment) {
		if kind == "create" {
			s.shell.issue = nil
			s.shell.queue = append(s.shell.queue, func() bool {
				s.dropSet(order.Set.Name)
				s.shell.replace(s.shell.o.Sets[0].Set.UID, nil)
				s.shell.o.Taken = &deployment.Taken{Name: order.Set.Name}
				return true
			})
		}
	}
	s.decide()
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	return s
}

func setDeleted(t *testing.T) *story {
	s := settled(t, web(2))
	s.say("somebody deletes the set")
	if err := s.deleteSet(s.sets[0].Name, s.sets[0].UID); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Minute)
	s.decide()
	s.follow(3)
	return s
}

func orderRefused(t *testing.T) *story {
	s := settled(t, web(3))
	s.say("5 machines are wanted, and the store refuses")
	s.edit(replicas(5))
	s.refuseWith(2)
	s.decide()
	s.say("again")
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	s.say("and again")
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	return s
}

func machinesFailing(t *testing.T) *story {
	s := newStory(t, web(2))
	s.decide()
	s.obeyAll()
	s.say("the provider has no room, the set says so")
	for _, m := range s.machines {
		s.changeMachine(m.Name, func(m *machine.Machine) {
			m.Status.Phase, m.Status.LastOperation = machine.PhaseCrashLoopBackOff, failed("no room")
		})
	}
	s.changeSet(s.sets[0].Name, func(set *machineset.Set) {
		set.Status.Conditions = []object.Condition{{
			Type: machineset.ConditionReplicaFailure, Status: object.True, Reason: "CreateFailed", Message: "2 machines: no room", Since: begin,
		}}
	})
	s.pass(time.Minute)
	s.decide()
	s.say("room is made")
	s.changeSet(s.sets[0].Name, func(set *machineset.Set) { set.Status.Conditions = nil })
	for _, m := range s.machines {
		s.changeMachine(m.Name, func(m *machine.Machine) { m.Status.LastOperation = machine.Operation{} })
		s.enter(m.Name, machine.PhaseRunning)
	}
	s.pass(time.Minute)
	s.decide()
	return s
}

func sizeRepaired(t *testing.T) *story {
	s := settled(t, web(2))
	s.say("somebody gives the set a size that means nothing")
	s.changeSet(s.sets[0].Name, func(set *machineset.Set) { set.Spec.Replicas = -7 })
	s.decide()
	return s
}

func statusThrottled(t *testing.T) *story {
	s := settled(t, web(2))
	s.say("a machine becomes unhealthy, and another one 300 ms later")
	s.pass(time.Minute)
	s.enter(s.running(0), machine.PhaseUnknown)
	s.decide()
	s.pass(300 * time.Millisecond)
	s.enter(s.running(1), machine.PhaseUnknown)
	s.decide()
	s.say("the interval is over")
	s.pass(700 * time.Millisecond)
	s.decide()
	return s
}

func deletion(t *testing.T) *story {
	s := settled(t, web(2))
	s.edit(class("large"))
	s.decide()
	s.say("the deployment is deleted")
	s.pass(time.Minute)
	s.deleteDeployment()
	s.decide()
	s.say("the sets delete their machines")
	s.pass(time.Minute)
	s.obeyAll()
	s.decide()
	s.say("these go, and then the sets")
	s.pass(time.Minute)
	s.liveAll()
	s.obeyAll()
	s.decide()
	return s
}
