package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/answer"
	"github.com/millwright-go/millwright/manager/internal/pace"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
)

// list lists the VMs of classes, then reads the machines, to find VMs without a machine. A pass over groups
// lists groups, then reads the pools.
func (p *orphanPass) list(ctx context.Context, orders []orphan.ListVMs) error {
	answers, failed := make([]*orphan.Listing, len(orders)), make([]error, len(orders))
	turns := make([]time.Time, len(orders))
	for i := range orders {
		turns[i] = p.turn(p.of.names().list, orders[i].Class, p.classes[orders[i].Class])
	}
	p.Each(ctx, len(orders), func(i int) {
		if !turns[i].IsZero() {
			return
		}
		failed[i] = p.Timed(p.of.names().list, func() (err error) {
			answers[i], turns[i], err = p.listOne(ctx, p.classes[orders[i].Class])
			return err
		})
	})
	spared, err := p.of.spared(ctx)
	if err != nil {
		return err
	}
	p.o.Instances = spared
	for i := range orders {
		switch {
		case !turns[i].IsZero():
			failed[i] = nil // the call was not made
			p.postponeListing(orders[i].Class, turns[i])
		case answers[i] != nil:
			failed[i] = nil // hooks have seen the error
			answers[i].VMs = without(answers[i].VMs, spared)
			p.noteListing(orders[i].Class, answers[i])
		}
	}
	if err := errors.Join(failed...); err != nil || p.read {
		return err
	}
	err = p.of.readOwners(ctx, false)
	p.read = err == nil
	return err
}

// listOne asks for the VMs of a class. A listing comes with the error of the call, if any. A time says
// when to ask again, because the provider asked to wait; then there is no listing.
func (p *orphanPass) listOne(ctx context.Context, class *machine.Class) (*orphan.Listing, time.Time, error) {
	secret, err := p.Secrets.Merged(ctx, class)
	if errors.Is(err, secrets.ErrNamespace) {
		return &orphan.Listing{Asked: p.Now(), Answered: p.Now(), Outcome: answer.Of(err)}, time.Time{}, err
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	listing := &orphan.Listing{Asked: p.Now()}
	got, unhealthy, err := p.of.list(ctx, class, secret)
	if err != nil && ctx.Err() != nil {
		return nil, time.Time{}, ctx.Err()
	}
	if wait := p.Paces.Note(class, err, listing.Asked, p.Now()); wait > 0 {
		return nil, p.Now().Add(wait), err
	}
	listing.Answered, listing.Outcome = p.Now(), answer.Of(err)
	if err == nil {
		listing.VMs, listing.Unhealthy = got, unhealthy
	}
	return listing, time.Time{}, err
}

// turn returns when it is the turn of a call about something of a class. Zero: now.
func (p *orphanPass) turn(kind string, about object.Key, class *machine.Class) time.Time {
	return p.Paces.Ask(pace.Of(kind, about), class, 1, p.Now())
}

// postponeListing puts the next listing of a class off until a time.
func (p *orphanPass) postponeListing(key object.Key, at time.Time) {
	for i := range p.o.Classes {
		if class := &p.o.Classes[i]; class.Key == key {
			class.NotBefore = at
		}
	}
}

// noteListing puts a class's listing into the observation. The process remembers a failure until the pass
// has judged the listing: should the pass fail, the next one asks again soon.
func (p *orphanPass) noteListing(key object.Key, answer *orphan.Listing) {
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
	p.o.Read = decision.Freshness{}
}

// collect deletes orphans, each if it still is one just before.
func (p *orphanPass) collect(ctx context.Context, orders []orphan.Delete) error {
	outcomes, failed := make([]*machine.Outcome, len(orders)), make([]error, len(orders))
	turns := make([]time.Time, len(orders))
	for i := range orders {
		turns[i] = p.turn(p.of.names().delete, object.Key{Name: orders[i].ProviderID}, p.classes[orders[i].Class])
	}
	p.Each(ctx, len(orders), func(i int) {
		if !turns[i].IsZero() {
			return
		}
		var still bool
		if still, failed[i] = p.of.still(ctx, &orders[i]); !still {
			return
		}
		failed[i] = p.Timed(p.of.names().delete, func() (err error) {
			outcomes[i], turns[i], err = p.deleteOne(ctx, &orders[i])
			return err
		})
	})
	for i := range orders {
		p.o.Deleted[orders[i].ProviderID] = true
		switch {
		case !turns[i].IsZero():
			failed[i] = nil // the call was not made
			p.postponeDeletion(orders[i].ProviderID, turns[i])
		case outcomes[i] != nil:
			failed[i] = nil // hooks have seen the error
			p.noteDeletion(ctx, &orders[i], outcomes[i])
		}
	}
	p.o.Tries = p.failed()
	return errors.Join(failed...)
}

// postponeDeletion puts the deletion of an orphan off until a time. That is no failure.
func (p *orphanPass) postponeDeletion(id string, at time.Time) {
	try := p.tries[id]
	try.ProviderID, try.NotBefore = id, at
	p.tries[id] = try
}

// deleteOne deletes a VM or a group. An outcome comes with the error of the call, if any. A time says when
// to try again, because the provider asked to wait; then there is no outcome.
func (p *orphanPass) deleteOne(ctx context.Context, order *orphan.Delete) (*machine.Outcome, time.Time, error) {
	class := p.classes[order.Class]
	secret, err := p.Secrets.Merged(ctx, class)
	if errors.Is(err, secrets.ErrNamespace) {
		outcome := answer.Of(err)
		return &outcome, time.Time{}, err
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	began := p.Now()
	err = p.of.delete(ctx, order, class, secret)
	if err := engine.Interrupted(ctx, err); err != nil {
		return nil, time.Time{}, err
	}
	if wait := p.Paces.Note(class, err, began, p.Now()); wait > 0 {
		return nil, p.Now().Add(wait), err
	}
	outcome := answer.Of(err)
	return &outcome, time.Time{}, err
}

// noteDeletion notes the outcome of a deletion.
func (p *orphanPass) noteDeletion(ctx context.Context, order *orphan.Delete, answer *machine.Outcome) {
	id := order.ProviderID
	if answer.Code == codes.Aborted && p.groups { // the group is being deleted: the call is repeated until it is gone
		p.tries[id] = orphan.Try{ProviderID: id, At: p.Now(), Code: answer.Code, Failures: p.tries[id].Failures + 1}
		p.EmitOnce(ctx, engine.Normal, order.Why)
		return
	}
	if answer.Code != codes.OK && answer.Code != codes.NotFound {
		p.tries[id] = orphan.Try{ProviderID: id, At: p.Now(), Code: answer.Code, Failures: p.tries[id].Failures + 1}
		p.warned = true
		why := decision.Why{Reason: p.of.names().failed, Name: id, Code: answer.Code, Detail: answer.Message}
		p.EmitOnce(ctx, engine.Warning, why)
		return
	}
	p.candidates = slices.DeleteFunc(slices.Clone(p.candidates), func(s orphan.Candidate) bool { return s.ProviderID == id })
	p.o.Candidates = p.candidates
	p.Emit(ctx, engine.Normal, order.Why)
}

// without returns a listing of VMs without some of them, and changes none of its arguments.
func without(vms map[string]string, some map[string]bool) map[string]string {
	if len(some) == 0 {
		return vms
	}
	left := maps.Clone(vms)
	maps.DeleteFunc(left, func(id, _ string) bool { return some[id] })
	return left
}
