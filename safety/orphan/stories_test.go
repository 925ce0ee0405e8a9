package orphan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/test/safetytest"
)

// wait makes n passes, each at the time that the last plan names.
func (c *cloud) wait(n int) {
	for range n {
		c.Now = c.plan.At
		require.NoError(c.t, c.pass())
	}
}

// firstPass makes a pass now.
func (c *cloud) firstPass() { require.NoError(c.t, c.pass()) }

// outOfRange writes that GetMachineStatus found several VMs.
func outOfRange(m *machine.Machine, at time.Time) {
	m.Status.Phase = machine.PhaseCrashLoopBackOff
	m.Status.LastOperation = machine.Operation{
		Kind: machine.OperationCreate, State: machine.StateFailed, Stage: machine.StageGetVMStatus,
		Code: codes.OutOfRange, Time: at.Truncate(time.Second),
	}
}

var stories = map[string]func(*cloud){
	"orphan collected": func(c *cloud) {
		c.addMachine("m-1", "a", machine.PhaseRunning, c.createVM("m-1", "a").id)
		c.Say("VM p://2 was made for m-2, whose record is gone")
		c.createVM("m-2", "a")
		c.firstPass()
		c.wait(2)
	},
	"orphan extra VM of a machine": func(c *cloud) {
		c.addMachine("m-1", "a", machine.PhaseRunning, c.createVM("m-1", "a").id)
		c.Say("a create whose answer was lost comes in late: a second VM of m-1")
		c.createVM("m-1", "a")
		c.firstPass()
		c.wait(1)
	},
	"orphan of a create in flight": func(c *cloud) {
		c.Say("m-1 announced a create, whose answer was lost; m-2 fails in its initialization")
		c.addMachine("m-1", "a", machine.PhasePending, "")
		c.createVM("m-1", "a")
		c.addMachine("m-2", "a", machine.PhaseCrashLoopBackOff, c.createVM("m-2", "a").id)
		c.createVM("m-2", "a")
		c.firstPass()
		c.wait(1)
		c.Say("m-2 comes to run")
		c.machines["m-2"].Status.Phase = machine.PhaseRunning
		c.wait(2)
	},
	"orphan several VMs none recorded": func(c *cloud) {
		c.firstPass()
		c.Now = c.Now.Add(5 * time.Minute)
		c.Say("GetMachineStatus answers OUT_OF_RANGE for m-1")
		c.createVM("m-1", "a")
		c.createVM("m-1", "a")
		outOfRange(c.addMachine("m-1", "a", machine.PhaseNew, ""), c.Now)
		c.hints = []orphan.Hint{{Class: object.Key{Namespace: "fleet", Name: "a"}, At: c.Now, Several: "m-1"}}
		c.firstPass()
		c.wait(1)
	},
	"orphan several VMs one recorded": func(c *cloud) {
		v := c.createVM("m-1", "a")
		c.createVM("m-1", "a")
		outOfRange(c.addMachine("m-1", "a", machine.PhaseNew, v.id), c.Now)
		c.Say("GetMachineStatus answers OUT_OF_RANGE for m-1, which has recorded p://1")
		c.firstPass()
		c.wait(1)
	},
	"orphan create answers out of range": func(c *cloud) {
		c.createVM("m-1", "a")
		m := c.addMachine("m-1", "a", machine.PhaseNew, "")
		outOfRange(m, c.Now)
		m.Status.LastOperation.Stage = machine.StageCreateVM
		c.Say("CreateMachine, not GetMachineStatus, answers OUT_OF_RANGE for m-1")
		c.firstPass()
		c.wait(1)
	},
	"orphan machine disappears": func(c *cloud) {
		c.firstPass()
		c.Now = c.Now.Add(2 * time.Minute)
		c.Say("m-1 is gone, its VM is not")
		c.createVM("m-1", "a")
		c.hints = []orphan.Hint{{Class: object.Key{Namespace: "fleet", Name: "a"}, At: c.Now}}
		c.firstPass()
		c.wait(2)
	},
	"orphan listing fails": func(c *cloud) {
		c.createVM("m-1", "a")
		c.answer = func(call, about string) codes.Code {
			if call == "list" && about == "b" {
				return codes.Unimplemented
			}
			if call == "list" {
				return codes.Unavailable
			}
			return codes.OK
		}
		c.firstPass()
		c.wait(2)
		c.answer = nil
		c.Say("the provider has recovered")
		c.wait(2)
	},
	"orphan listed by two classes": func(c *cloud) {
		c.shared = true
		c.createVM("m-1", "b")
		c.firstPass()
		c.wait(1)
	},
	"orphan delete fails": func(c *cloud) {
		c.createVM("m-1", "a")
		c.answer = func(call, _ string) codes.Code {
			if call == "delete" {
				return codes.Unavailable
			}
			return codes.OK
		}
		c.firstPass()
		c.wait(2)
		c.answer = nil
		c.Say("the provider has recovered")
		c.wait(1)
	},
	"orphan oddities": func(c *cloud) {
		c.policy.OrphanPrefix = "web-"
		c.createVM("", "a")
		c.createVM("db-1", "a")
		c.createVM("web-1", "a").id = ""
		c.Say("a VM without a name, one of another fleet, one without ID")
		c.firstPass()
		c.wait(1)
	},
	"orphan listing lags behind": func(c *cloud) {
		c.lag = time.Minute
		v := c.createVM("m-1", "a")
		c.addMachine("m-1", "a", machine.PhaseRunning, v.id)
		c.Now = c.Now.Add(2 * time.Minute)
		v.gone = c.Now
		delete(c.machines, "m-1")
		c.Say("m-1 was deleted, its VM too; the listing shows it for another minute")
		c.firstPass()
		c.wait(1)
		c.wait(1)
	},
	"orphan memory lost": func(c *cloud) {
		c.createVM("m-1", "a")
		c.firstPass()
		c.Now = c.Now.Add(29 * time.Second)
		c.restart()
		c.Say("a new process: what was seen before counts no longer")
		c.firstPass()
		c.wait(1)
	},
	"orphan braked on a wrong store": func(c *cloud) {
		c.began = c.Now
		c.Say("the store knows one machine of 60 VMs: it is an old copy, or another cluster's")
		c.addMachine("m-00", "a", machine.PhaseRunning, c.createVM("m-00", "a").id)
		for i := range 59 {
			c.createVM(fmt.Sprintf("m-%02d", i+1), "a")
		}
		c.firstPass()
		c.wait(4)
	},
	"orphan in an empty store": func(c *cloud) {
		c.owners = 0
		c.createVM("m-1", "a")
		c.Say("no machine, no set, no deployment")
		c.firstPass()
		c.wait(1)
		c.owners = 1
		c.Say("a deployment is made")
		c.wait(2)
	},
	"orphan in an empty store by policy": func(c *cloud) {
		c.owners, c.policy.OrphansOfEmptyStore = 0, true
		c.createVM("m-1", "a")
		c.firstPass()
		c.wait(1)
	},
	"orphan frozen": func(c *cloud) {
		c.createVM("m-1", "a")
		c.firstPass()
		c.frozen = true
		c.Now = c.Now.Add(time.Minute)
		c.firstPass()
	},
}

// TestStories compares what the collector does with the files in testdata.
func TestStories(t *testing.T) {
	for name, run := range stories {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, "a", "b")
			run(c)
			safetytest.Compare(t, name, &c.Journal)
		})
	}
}
