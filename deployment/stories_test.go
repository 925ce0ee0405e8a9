package deployment_test

import (
	"testing"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
)

// stories are the behaviour as a reader would want it told, one golden each.
var stories = map[string]func(*testing.T) *story{
	"first-set":                     firstSet,
	"roll-with-surge":               rollWithSurge,
	"roll-with-unavailable":         rollWithUnavailable,
	"roll-stuck":                    rollStuck,
	"roll-stopped":                  rollStopped,
	"roll-reverted":                 rollReverted,
	"roll-unhealthy-first":          rollUnhealthyFirst,
	"roll-new-template-meanwhile":   rollAgain,
	"scale-up-and-down":             scaleUpAndDown,
	"scale-to-zero-and-back":        scaleToZero,
	"scale-down-while-rolling":      scaleDownWhileRolling,
	"min-ready":                     minReady,
	"node-template-changed":         nodeTemplate,
	"neither-surge-nor-unavailable": bothZero,
	"more-than-100-percent":         over100,
	"spec-invalid":                  specInvalid,
	"selecting-all":                 selectingAll,
	"adopt":                         adopt,
	"release":                       release,
	"name-taken-by-another":         nameTaken,
	"name-taken-while-creating":     nameTakenMeanwhile,
	"name-free-again":               nameFree,
	"set-deleted-by-hand":           setDeleted,
	"order-refused":                 orderRefused,
	"machines-failing":              machinesFailing,
	"size-repaired":                 sizeRepaired,
	"status-throttled":              statusThrottled,
	"deletion":                      deletion,
}

func settled(t *testing.T, d *deployment.Deployment) *story {
	s := newStory(t, d)
	s.settle()
	return s
}

func firstSet(t *testing.T) *story {
	s := newStory(t, web(3))
	s.decide()
	s.say("the set makes its machines")
	s.pass(10 * time.Second)
	s.obeyAll()
	s.decide()
	s.say("they come up")
	s.pass(time.Minute)
	s.liveAll()
	s.decide()
	s.say("nothing happens")
	s.pass(10 * time.Minute)
	s.decide()
	return s
}

func rollWithSurge(t *testing.T) *story {
	s := settled(t, web(3))
	s.say("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.follow(6)
	return s
}

func rollWithUnavailable(t *testing.T) *story {
	d := web(4)
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{}
	d.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: 50, Percent: true}
	s := settled(t, d)
	s.say("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.follow(5)
	return s
}

func rollStuck(t *testing.T) *story {
	s := settled(t, web(2))
	s.say("a class is wanted whose machines never come up")
	s.edit(class("broken"))
	s.decide()
	for range 2 {
		s.pass(time.Minute)
		s.obeyAll()
		s.decide()
	}
	return s
}

func rollStopped(t *testing.T) *story {
	d := web(4)
	d.Spec.Strategy = deployment.DefaultStrategy()
	d.Spec.Strategy.StopAfter.Value = 1
	s := settled(t, d)
	s.say("another class is wanted; the first machine that fails is to stop the rollout")
	s.edit(class("large"))
	s.decide()
	s.pass(time.Minute)
	s.obeyAll()
	s.decide()
	s.say("one of the new machines does not join in time")
	for _, m := range s.machines {
		if m.Spec.Class.Name == "large" {
			s.enter(m.Name, machine.PhaseFailed)
		}
	}
	s.pass(20 * time.Minute)
	s.decide()
	s.say("its set deletes it, and makes none; the old machines stay")
	s.obeyAll()
	s.pass(time.Minute)
	s.decide()
	s.say("the class is put back")
	s.edit(class("small"))
	s.decide()
	s.follow(4)
	return s
}

func rollReverted(t *testing.T) *story {
	s := settled(t, web(3))
	s.say("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.follow(2)
	s.say("no, it is not")
	s.edit(class("small"))
	s.decide()
	s.follow(3)
	return s
}

func rollUnhealthyFirst(t *testing.T) *story {
	d := web(4)
	d.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: 1}
	s := settled(t, d)
	s.say("a machine becomes unhealthy, and another class is wanted")
	s.enter(s.running(2), machine.PhaseUnknown)
	s.edit(class("large"))
	s.decide()
	s.say("the old set gives up the unhealthy machine, the new ones come up")
	s.follow(2)
	return s
}

func rollAgain(t *testing.T) *story {
	s := settled(t, web(3))
	s.edit(class("large"))
	s.decide()
	s.say("the set has announced a machine, and a third class is wanted")
	s.obey(s.sets[1])
	s.edit(class("huge"))
	s.decide()
	s.say("the machine announced is made although nobody wants it any more")
	s.obey(s.sets[1])
	s.decide()
	s.follow(2)
	return s
}

func scaleUpAndDown(t *testing.T) *story {
	s := settled(t, web(3))
	s.say("5 machines are wanted")
	s.edit(replicas(5))
	s.decide()
	s.follow(1)
	s.say("2 machines are wanted")
	s.edit(replicas(2))
	s.decide()
	s.follow(1)
	return s
}

func scaleToZero(t *testing.T) *story {
	s := settled(t, web(2))
	s.say("none is wanted")
	s.edit(replicas(0))
	s.decide()
	s.follow(2)
	s.say("2 are wanted again, and nothing else is different")
	s.edit(replicas(2))
	s.decide()
	s.follow(1)
	return s
}

func scaleDownWhileRolling(t *testing.T) *story {
	d := web(8)
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: 25, Percent: true}
	s := settled(t, d)
	s.say("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.follow(2)
	s.say("and 4 machines only")
	s.edit(replicas(4))
	s.decide()
	s.follow(4)
	return s
}

func minReady(t *testing.T) *story {
	d := web(2)
	d.Spec.MinReady = 30 * time.Second
	s := newStory(t, d)
	s.decide()
	s.say("the machines are there and run")
	s.obeyAll()
	s.liveAll()
	s.pass(10 * time.Second)
	s.decide()
	s.say("the time has come")
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	return s
}

func nodeTemplate(t *testing.T) *story {
	s := settled(t, web(3))
	s.say("nodes should carry another label, and creation may take longer")
	s.pass(time.Minute)
	s.edit(func(spec *deployment.Spec) {
		spec.Template.Spec.NodeTemplate.Labels = map[string]string{"pool": "a"}
		spec.Template.Spec.Config.CreationTimeout = time.Hour
	})
	s.decide()
	return s
}
