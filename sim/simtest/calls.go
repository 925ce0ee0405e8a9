package simtest

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/sim"
)

// call is a call to the driver, as the driver sees it: it does not show whether the answer reached the
// manager.
type call struct {
	method      codes.Call
	machine     *machine.Machine // nil if the call is about a class
	class       *machine.Class
	secret      *machine.Secret
	began, over time.Duration // since the beginning of the world
	id          string        // the VM's ID in the answer
	list        map[string]string
	err         error
	answered    bool
	shared      bool // another call about the machine was under way at the same time
}

// about returns the name and the VM's ID in the request.
func (c *call) about() (name, id string) {
	if c.machine == nil {
		return "", ""
	}
	return c.machine.Name, c.machine.Spec.ProviderID
}

// String returns the call with its answer.
func (c *call) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "driver: %s", c.method)
	switch name, id := c.about(); {
	case name != "" && id != "":
		fmt.Fprintf(&b, " %s, %s", name, id)
	case name != "" && c.method == codes.CreateMachine: // its request never has an ID
		fmt.Fprintf(&b, " %s", name)
	case name != "":
		fmt.Fprintf(&b, " %s, no ID", name)
	case c.class != nil:
		fmt.Fprintf(&b, " of class %s", c.class.Name)
	}
	switch {
	case !c.answered: // the driver panicked, or the manager died
		b.WriteString(" -> no answer")
	case c.err != nil:
		fmt.Fprintf(&b, " -> %s: %s", codes.Of(c.err), codes.Message(c.err))
	case c.method == codes.ListMachines:
		fmt.Fprintf(&b, " -> OK, %d VMs", len(c.list))
	default:
		b.WriteString(" -> OK")
	}
	if c.id != "" {
		fmt.Fprintf(&b, ", VM %s", c.id)
	}
	if took := c.over - c.began; took > 0 {
		fmt.Fprintf(&b, " (took %s)", took.Round(time.Millisecond))
	}
	return b.String()
}

// watched wraps the driver under test. It records its calls and checks its answers.
type watched struct {
	driver.Driver
	b *bench
}

// Unwrap returns the driver under test.
func (d watched) Unwrap() driver.Driver { return d.Driver }

// around makes a call, records it and checks its answer.
func (d watched) around(ctx context.Context, c *call, do func() error) {
	b := d.b
	b.calls.begin(c, b.w)
	defer b.calls.end(c, b.w) // also if it panics
	b.answers.around(ctx, c, d.Driver, func() {
		c.err = do()
		c.answered = true
	})
}

// CreateMachine implements driver.Driver.
func (d watched) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (out *driver.CreateMachineResponse, err error) {
	c := &call{method: codes.CreateMachine, machine: req.Machine, class: req.Class, secret: req.Secret}
	d.around(ctx, c, func() error {
		out, err = d.Driver.CreateMachine(ctx, req)
		if out != nil {
			c.id = out.ProviderID
		}
		return err
	})
	return out, err
}

// InitializeMachine implements driver.Driver.
func (d watched) InitializeMachine(ctx context.Context, req *driver.InitializeMachineRequest) (out *driver.InitializeMachineResponse, err error) {
	c := &call{method: codes.InitializeMachine, machine: req.Machine, class: req.Class, secret: req.Secret}
	d.around(ctx, c, func() error {
		out, err = d.Driver.InitializeMachine(ctx, req)
		if out != nil {
			c.id = out.ProviderID
		}
		return err
	})
	return out, err
}

// withoutID removes the VM's ID from the request for one machine in four, as if no create for it had been
// answered. The machine's UID decides which, so that a run can be repeated. Requests for orphans, which
// have no UID, keep the ID.
func withoutID(req *driver.DeleteMachineRequest) *driver.DeleteMachineRequest {
	if uid := req.Machine.UID; uid == "" || crc32.ChecksumIEEE([]byte(uid))%4 != 0 {
		return req
	}
	anonymous := *req
	anonymous.Machine = req.Machine.Clone()
	anonymous.Machine.Spec.ProviderID = ""
	return &anonymous
}

// DeleteMachine implements driver.Driver.
func (d watched) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (out *driver.DeleteMachineResponse, err error) {
	req = withoutID(req)
	c := &call{method: codes.DeleteMachine, machine: req.Machine, class: req.Class, secret: req.Secret}
	d.around(ctx, c, func() error { out, err = d.Driver.DeleteMachine(ctx, req); return err })
	return out, err
}

// GetMachineStatus implements driver.Driver.
func (d watched) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (out *driver.GetMachineStatusResponse, err error) {
	c := &call{method: codes.GetMachineStatus, machine: req.Machine, class: req.Class, secret: req.Secret}
	d.around(ctx, c, func() error {
		out, err = d.Driver.GetMachineStatus(ctx, req)
		if out != nil {
			c.id = out.ProviderID
		}
		return err
	})
	return out, err
}

// ListMachines implements driver.Driver.
func (d watched) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (out *driver.ListMachinesResponse, err error) {
	c := &call{method: codes.ListMachines, class: req.Class, secret: req.Secret}
	d.around(ctx, c, func() error {
		out, err = d.Driver.ListMachines(ctx, req)
		if out != nil {
			c.list = out.Machines
		}
		return err
	})
	return out, err
}

// UpdateMachine implements driver.Driver.
func (d watched) UpdateMachine(ctx context.Context, req *driver.UpdateMachineRequest) (out *driver.UpdateMachineResponse, err error) {
	c := &call{method: codes.UpdateMachine, machine: req.Machine, class: req.Class, secret: req.Secret}
	d.around(ctx, c, func() error { out, err = d.Driver.UpdateMachine(ctx, req); return err })
	return out, err
}

// journal records what happened in a world, in order. A nil journal records nothing.
type journal struct {
	start time.Time
	lines []line
}

// line is something that happened.
type line struct {
	at   time.Duration // since the beginning of the world
	text string
	call *call // the call whose answer the line shows, or nil
}

func (j *journal) since(now time.Time) time.Duration {
	if j.start.IsZero() {
		j.start = now
	}
	return now.Sub(j.start)
}

// tell implements sim.Options.Tell.
func (j *journal) tell(now time.Time, what string) {
	j.lines = append(j.lines, line{at: j.since(now), text: what})
}

func (j *journal) begin(c *call, w *sim.World) {
	if j != nil {
		c.began = j.since(w.Now())
	}
}

func (j *journal) end(c *call, w *sim.World) {
	if j != nil {
		c.over = j.since(w.Now())
		j.lines = append(j.lines, line{at: c.over, text: c.String(), call: c})
	}
}

// upTo returns the lines with the violation last. Calls that ended only because the world was closed were
// recorded after it.
func (j *journal) upTo(violation bool) []line {
	last := len(j.lines) - 1
	for last >= 0 && j.lines[last].call != nil {
		last--
	}
	if !violation || last < 0 {
		return j.lines
	}
	lines := slices.Clone(j.lines[:last])
	lines = append(lines, j.lines[last+1:]...)
	return append(lines, j.lines[last])
}
