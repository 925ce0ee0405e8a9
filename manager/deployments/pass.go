package deployments

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/overshoot"
)

// Config is what deployments need of the rest of a fleet.
type Config struct {
	Deployments *engine.Objects[*deployment.Deployment]
	Sets        *engine.Objects[*machineset.Set]
	Machines    *engine.Objects[*machine.Machine]
	Classes     *engine.Objects[*machine.Class]
	Secrets     secrets.Secrets
	Joins       bool // machines join a cluster
	Policy      *deployment.Policy
	// Safety freezes deployments that have too many machines; nil: nothing does.
	Safety *safety.Policy

	// ClockFrom returns what deployment.Observation.ClockFrom asks for; nil: nothing.
	ClockFrom func() time.Time

	// Split splits the spec of a class into what can be updated in place and what can't. Nil: VMs are
	// not updated.
	Split func(*machine.Class) *machine.VMSpec
	// MigratesClasses says that a class of another kind is not ours, even if one of ours has its name.
	MigratesClasses bool

	// Settled is told of a deployment and its sets at the end of a pass; may be nil.
	Settled func(*deployment.Deployment, []deployment.Children)
	// Forget is told of a deployment that is gone; may be nil.
	Forget func(object.Key)
}

type reconciler struct {
	Config
	notes engine.Notes[notes]
}

// notes are what a process remembers of a deployment. Losing them shortens a wait.
type notes struct {
	refusal    *deployment.Refusal // of an order
	generation int64               // that it was seen with

	statusWritten time.Time
	gathering     time.Time // since when orders wait for others
	heldUp        time.Time // when it was told last that machines are held up
}

// pass is one pass over one deployment.
type pass struct {
	*engine.Pass
	*reconciler
	o     deployment.Observation
	plan  deployment.Plan
	bound overshoot.Plan // comes before plan
	asked string         // in a dry run: the name of a set, that was looked for
}

// refuse remembers a refusal; nil: there was none.
func (p *pass) refuse(refusal *engine.Refusal) {
	if refusal == nil {
		return
	}
	answer := &machine.Outcome{Code: refusal.Code, Message: refusal.Message}
	wait := p.Policy.Retry.Backoff(p.o.Failures, 0)
	p.notes.Change(p.Key, func(n *notes) {
		n.refusal = &deployment.Refusal{Outcome: *answer, Until: p.Now().Add(wait)}
		n.generation = p.o.Deployment.Generation
	})
	p.Ordered(true)
	p.o.Failed = answer
}

// setsBatch carries out orders to sets.
func (p *pass) setsBatch() *engine.Batch[*machineset.Set] {
	return &engine.Batch[*machineset.Set]{Pass: p.Pass, Objects: p.Sets}
}

// changeSets is the order to change a set that was read.
func (p *pass) changeSets(b *engine.Batch[*machineset.Set]) engine.Order[*machineset.Set] {
	return b.Change(setsOf(p.o.Sets), p.o.Orphans)
}

func setsOf(children []deployment.Children) []*machineset.Set {
	sets := make([]*machineset.Set, len(children))
	for i := range children {
		sets[i] = children[i].Set
	}
	return sets
}
