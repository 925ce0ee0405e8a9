package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// deployments reconciles deployments.
type deployments struct {
	*shell
	memo memo
}

func newDeploymentReconciler(s *shell) *deployments { return &deployments{shell: s} }

// Kind implements Reconciler.
func (r *deployments) Kind() Kind { return KindDeployment }

// Reconcile implements Reconciler.
func (r *deployments) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	return r.reconcile(ctx, KindDeployment, key, &r.memo, func(p *engine.Pass) pass {
		return &deploymentPass{parent: parent{shell: r.shell, pass: p, memo: &r.memo, key: key}}
	})
}

// deploymentPass is one pass over one deployment.
type deploymentPass struct {
	parent
	o deployment.Observation
}

func (p *deploymentPass) step(ctx context.Context) (Result, bool, error) {
	if busy, err := p.bound(ctx); busy || err != nil {
		return Result{}, false, err
	}
	p.o.Frozen = p.held(&p.o.Deployment.Meta)
	plan, err := deployment.Decide(&p.o, p.DeploymentPolicy, p.Now())
	if err != nil {
		return Result{}, false, err
	}
	if !plan.Gathering.Equal(p.o.Gathering) {
		p.o.Gathering = plan.Gathering
		p.memo.notes.Change(p.key, func(n *notes) { n.gathering = plan.Gathering })
	}
	if plan.Warn != (decision.Why{}) {
		p.warn(ctx, plan.Warn)
	}
	because(ctx, p.shell, plan.Why)
	done, err := p.act(ctx, &plan)
	if done {
		if p.pass.Settle() {
			p.memo.notes.Change(p.key, func(n *notes) { n.refusal = nil })
		}
		p.tellPermits()
	}
	return p.look(plan.At, plan.Why), done, err
}

// act carries out what a plan holds; true: it holds nothing, the pass ends.
func (p *deploymentPass) act(ctx context.Context, plan *deployment.Plan) (bool, error) {
	b := &engine.Batch[*machineset.Set]{Pass: p.pass, Objects: p.Sets, Until: plan.Until}
	switch {
	case plan.ReadLive:
		return false, p.observe(ctx, true)
	case plan.Write != nil:
		return false, p.write(ctx, plan)
	case len(plan.Create) > 0:
		return false, p.each(ctx, b, "Create", plan.Create, p.create)
	case len(plan.Delete) > 0:
		return false, p.each(ctx, b, "Delete", plan.Delete, p.remove(b))
	case len(plan.Scale) > 0:
		return false, p.each(ctx, b, "Scale", plan.Scale, b.Objects.Update)
	case len(plan.Push) > 0:
		return false, p.each(ctx, b, "Push", plan.Push, b.Objects.Update)
	case len(plan.Adopt) > 0:
		return false, p.each(ctx, b, "Adopt", plan.Adopt, b.Objects.Update)
	case len(plan.Release) > 0:
		return false, p.each(ctx, b, "Release", plan.Release, b.Objects.Update)
	case len(plan.Handover) > 0:
		return false, p.each(ctx, b, "Handover", plan.Handover, b.Objects.Update)
	case len(plan.Mark) > 0:
		return false, p.eachMachine(ctx, "Mark", plan.Mark, plan.Until)
	case len(plan.Move) > 0:
		return false, p.eachMachine(ctx, "Move", plan.Move, plan.Until)
	}
	return true, nil
}

// each carries out orders of one kind, first to last.
func (p *deploymentPass) each(ctx context.Context, b *engine.Batch[*machineset.Set], name string, orders []deployment.Order,
	do engine.Order[*machineset.Set],
) error {
	sets := make([]*machineset.Set, len(orders))
	for i, order := range orders {
		sets[i] = order.Set
	}
	out := b.InOrder(ctx, name, sets, do)
	p.pass.Ordered(false)
	for i := range out {
		if out[i].Err == nil && p.o.Taken == nil {
			p.pass.Tell(ctx, Normal, orders[i].Why)
		}
	}
	if err := p.settle(ctx, out); err != nil {
		return err
	}
	answer, err := engine.Refused(ctx, out)
	p.refuse(answer)
	return err
}

// refuse remembers a refusal; nil: there was none.
func (p *deploymentPass) refuse(refusal *engine.Refusal) {
	if refusal == nil {
		return
	}
	answer := &machine.Outcome{Code: refusal.Code, Message: refusal.Message}
	wait := p.DeploymentPolicy.Retry.Backoff(p.o.Failures, 0)
	p.memo.notes.Change(p.key, func(n *notes) {
		n.refusal = &deployment.Refusal{Outcome: *answer, Until: p.Now().Add(wait)}
		n.generation = p.o.Deployment.Generation
	})
	p.pass.Ordered(true)
	p.o.Failed = answer
}

// settle puts sets that were written in the place of what was observed, and
// finds the machines of those that came to be ours.
func (p *deploymentPass) settle(ctx context.Context, out []engine.Outcome[*machineset.Set]) error {
	machines := make(map[string][]*machine.Machine, len(p.o.Sets)) // by the UID of their set
	sets := make([]*machineset.Set, 0, len(p.o.Sets)+1)
	for _, child := range p.o.Sets {
		machines[child.Set.UID] = child.Machines
		sets = append(sets, child.Set)
	}
	var created []*machineset.Set
	for _, o := range out {
		if o.Err == nil && o.Before.UID == "" && o.After != nil {
			created = append(created, o.After)
		}
	}
	owned, orphans := engine.Divide(p.o.Deployment.UID, out, sets, p.o.Orphans, created)
	children := make([]deployment.Children, len(owned))
	for i, set := range owned {
		theirs, known := machines[set.UID]
		if !known {
			var err error
			theirs, err = p.Machines.Live().List(ctx, store.Query{Index: IndexOwner, Value: set.UID})
			if err != nil {
				return err
			}
		}
		children[i] = deployment.Children{Set: set, Machines: theirs}
	}
	p.o.Sets, p.o.Orphans = children, orphans
	return nil
}

// create creates a set, or finds out who holds its name.
func (p *deploymentPass) create(ctx context.Context, set *machineset.Set) (*machineset.Set, error) {
	made, err := p.Sets.Create(ctx, set)
	if !errors.Is(err, store.ErrAlreadyExists) {
		return made, err
	}
	holder, err := p.Sets.Live().Get(ctx, set.Key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	p.o.Taken = &deployment.Taken{Name: set.Name, Set: holder}
	return nil, nil //nolint:nilnil // nothing was made, and nothing went wrong
}

// remove asks for a set's deletion and reads what is left of it.
func (p *deploymentPass) remove(b *engine.Batch[*machineset.Set]) engine.Order[*machineset.Set] {
	return func(ctx context.Context, set *machineset.Set) (*machineset.Set, error) {
		left, err := b.Delete(ctx, set)
		if err != nil || left == nil {
			return nil, err
		}
		left, err = p.Sets.Live().Get(ctx, set.Key)
		if errors.Is(err, store.ErrNotFound) || err == nil && left.UID != set.UID {
			return nil, nil //nolint:nilnil // it is gone
		}
		return left, err
	}
}

// observe reads the deployment, then its sets, then their machines: from the
// caches, or live. Taken stays: a name is not tried again in the same pass.
func (p *deploymentPass) observe(ctx context.Context, live bool) error {
	read := struct {
		deployments store.Reader[*deployment.Deployment]
		sets        store.Reader[*machineset.Set]
		machines    store.Reader[*machine.Machine]
	}{p.Deployments, p.Sets, p.Machines}
	began := p.Now()
	if live {
		read.deployments, read.sets, read.machines = p.Deployments.Live(), p.Sets.Live(), p.Machines.Live()
	}
	d, err := read.deployments.Get(ctx, p.key)
	if err != nil {
		return engine.Itself(err)
	}
	if p.o.Deployment != nil && p.o.Deployment.UID != d.UID {
		return engine.ErrReplaced
	}
	owned, err := read.sets.List(ctx, store.Query{Index: IndexOwner, Value: d.UID})
	if err != nil {
		return err
	}
	orphans, err := read.sets.List(ctx, store.Query{Index: IndexOwner, Value: index.OrphansOf(d.Namespace)})
	if err != nil {
		return err
	}
	children, err := withMachines(ctx, owned, read.machines)
	if err != nil {
		return err
	}
	p.o.Deployment, p.o.Sets, p.o.Orphans = d, children, orphans
	if p.o.HotUpdate, err = p.hotUpdate(ctx, d, owned, live); err != nil {
		return err
	}
	p.o.Read = p.freshness(began, live)
	p.o.Failures = p.pass.Failures()
	known := p.memo.notes.Of(p.key)
	p.o.StatusWritten, p.o.Gathering = known.statusWritten, known.gathering
	p.o.Refused = p.memo.refusal(p.key, d.Generation)
	return nil
}

// withMachines reads the machines of sets.
func withMachines(ctx context.Context, owned []*machineset.Set, machines store.Reader[*machine.Machine]) ([]deployment.Children, error) {
	children := make([]deployment.Children, len(owned))
	for i, set := range owned {
		theirs, err := machines.List(ctx, store.Query{Index: IndexOwner, Value: set.UID})
		if err != nil {
			return nil, err
		}
		children[i] = deployment.Children{Set: set, Machines: theirs}
	}
	return children, nil
}

func (p *deploymentPass) write(ctx context.Context, plan *deployment.Plan) error {
	var after *deployment.Deployment
	var err error
	switch w := plan.Write.(type) {
	case *deployment.Update:
		if after, err = p.Deployments.Update(ctx, w.Deployment); err == nil && w.News != "" {
			p.tell(ctx, nil, KindDeployment, p.key, EventType(w.News), plan.Why)
		}
	case *deployment.UpdateStatus:
		changed := *p.o.Deployment
		changed.Status = w.Status
		if after, err = p.Deployments.UpdateStatus(ctx, &changed); err == nil {
			p.o.StatusWritten = p.Now()
			p.memo.notes.Change(p.key, func(n *notes) { n.statusWritten = p.o.StatusWritten })
		}
	default:
		err = fmt.Errorf("unknown write %T", w)
	}
	if err != nil {
		return engine.Itself(err)
	}
	p.o.Deployment = after
	return engine.Gone(&after.Meta)
}
