package manager

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// list asks for the VMs of classes, then looks which machines there are: VMs
// of all others come under suspicion.
func (p *orphanPass) list(ctx context.Context, orders []safety.ListVMs) error {
	answers, failed := make([]*safety.Listing, len(orders)), make([]error, len(orders))
	p.Each(ctx, len(orders), func(i int) {
		failed[i] = p.timed(KindOrphans, p.key, "ListVMs", func() (err error) {
			answers[i], err = p.listOne(ctx, p.classes[orders[i].Class])
			return err
		})
	})
	pooled, err := p.instances(ctx)
	if err != nil {
		return err
	}
	for i := range orders {
		if answers[i] != nil {
			failed[i] = nil // the hook was told
			answers[i].VMs = without(answers[i].VMs, pooled)
			p.heard(orders[i].Class, answers[i])
		}
	}
	if err := errors.Join(failed...); err != nil || p.read {
		return err
	}
	machines, err := p.Machines.List(ctx, store.Query{})
	p.o.Machines, p.read = machines, err == nil
	return err
}

// listOne asks for the VMs of a class. The error is beside the answer, or
// there is none.
func (p *orphanPass) listOne(ctx context.Context, class *machine.Class) (*safety.Listing, error) {
	secret, err := p.secrets.merged(ctx, class)
	if errors.Is(err, ErrSecretNamespace) {
		return &safety.Listing{Asked: p.Now(), Answered: p.Now(), Outcome: outcomeOf(err)}, err
	}
	if err != nil {
		return nil, err
	}
	answer := &safety.Listing{Asked: p.Now()}
	got, err := p.Driver.ListMachines(ctx, &driver.ListMachinesRequest{Class: class, Secret: secret})
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	answer.Answered, answer.Outcome = p.Now(), outcomeOf(err)
	if err == nil {
		answer.VMs = withDropped(got)
	}
	return answer, err
}

// withDropped is a list with the entries that can't be acted upon, so that they are
// told of. One that has an ID comes without its name, which may be cut: so it
// is nobody's, and no orphan either.
func withDropped(r *driver.ListMachinesResponse) map[string]string {
	if len(r.Dropped) == 0 {
		return r.Machines
	}
	all := make(map[string]string, len(r.Machines)+len(r.Dropped))
	for id, name := range r.Dropped {
		if strings.TrimSpace(id) != "" {
			name = ""
		}
		all[id] = name
	}
	maps.Copy(all, r.Machines)
	return all
}

// heard takes in how a class was answered for. Until the pass has judged it,
// the process remembers it as no answer, to ask again before long.
func (p *orphanPass) heard(key object.Key, answer *safety.Listing) {
	for i := range p.o.Classes {
		class := &p.o.Classes[i]
		if class.Key != key {
			continue
		}
		unjudged := *class
		unjudged.Asked, unjudged.Code, unjudged.Failures = answer.Asked, codes.Unavailable, class.Failures+1
		p.asked[key] = unjudged
		class.Asked, class.Code, class.Listing = answer.Asked, answer.Code, answer
		if class.Failures++; answer.Code == codes.OK {
			class.Failures, class.Listed = 0, len(answer.VMs)
		}
	}
	p.o.Live = time.Time{}
}

// collect deletes orphans, each if it still is one just before.
func (p *orphanPass) collect(ctx context.Context, orders []safety.DeleteOrphan) error {
	namespaces := p.namespaces()
	outcomes, failed := make([]*machine.Outcome, len(orders)), make([]error, len(orders))
	p.Each(ctx, len(orders), func(i int) {
		var still bool
		if still, failed[i] = p.stillOrphan(ctx, &orders[i], namespaces); !still {
			return
		}
		failed[i] = p.timed(KindOrphans, p.key, "DeleteOrphan", func() (err error) {
			outcomes[i], err = p.deleteOne(ctx, &orders[i])
			return err
		})
	})
	for i := range orders {
		p.o.Deleted[orders[i].ProviderID] = true
		if outcomes[i] != nil {
			failed[i] = nil // the hook was told
			p.deleted(ctx, &orders[i], outcomes[i])
		}
	}
	p.o.Tries = p.failed()
	return errors.Join(failed...)
}

// namespaces are those that a machine may be in: of classes, and of machines
// whose class is gone.
func (p *orphanPass) namespaces() []string {
	var all []string
	seen := make(map[string]bool)
	note := func(namespace string) {
		if !seen[namespace] {
			seen[namespace] = true
			all = append(all, namespace)
		}
	}
	for key := range p.classes {
		note(key.Namespace)
	}
	for _, m := range p.o.Machines {
		note(m.Namespace)
	}
	slices.Sort(all)
	return all
}

// stillOrphan asks the store, not a cache, for the machines of the order's name.
func (p *orphanPass) stillOrphan(ctx context.Context, order *safety.DeleteOrphan, namespaces []string) (bool, error) {
	for _, namespace := range namespaces {
		m, err := p.Machines.Live().Get(ctx, object.Key{Namespace: namespace, Name: order.Name})
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return false, err
		case !order.StillOrphan(m):
			return false, nil
		}
	}
	return true, nil
}

// deleteOne deletes a VM by its ID, as that of a machine made up for it. The
// error is beside the answer, or there is none.
func (p *orphanPass) deleteOne(ctx context.Context, order *safety.DeleteOrphan) (*machine.Outcome, error) {
	class := p.classes[order.Class]
	orderedFor(ctx, p.shell, object.Key{Namespace: order.Class.Namespace, Name: order.Name}, order.Why.Reason, order.Why)
	secret, err := p.secrets.merged(ctx, class)
	if errors.Is(err, ErrSecretNamespace) {
		outcome := outcomeOf(err)
		return &outcome, err
	}
	if err != nil {
		return nil, err
	}
	address(secret, order.Name)
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: order.Class.Namespace, Name: order.Name}}}
	m.Spec.ProviderID, m.Spec.Class.Name = order.ProviderID, order.Class.Name
	_, err = p.Driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, Class: class, Secret: secret})
	if err := interrupted(ctx, err); err != nil {
		return nil, err
	}
	outcome := outcomeOf(err)
	return &outcome, err
}

// deleted takes in what came of an order.
func (p *orphanPass) deleted(ctx context.Context, order *safety.DeleteOrphan, answer *machine.Outcome) {
	id := order.ProviderID
	if answer.Code != codes.OK && answer.Code != codes.NotFound {
		p.tries[id] = safety.Try{ProviderID: id, At: p.Now(), Code: answer.Code, Failures: p.tries[id].Failures + 1}
		p.odd = true
		why := remark("orphan VM " + id + " could not be deleted: " + answer.Code.Contract() + ": " + answer.Message)
		p.tell(ctx, &p.memo, KindOrphans, p.key, Warning, string(safety.ReasonDeleteFailed), why)
		return
	}
	p.sightings = slices.DeleteFunc(slices.Clone(p.sightings), func(s safety.Sighting) bool { return s.ProviderID == id })
	p.o.Sightings = p.sightings
	p.tell(ctx, nil, KindOrphans, p.key, Normal, string(order.Why.Reason), order.Why)
}
