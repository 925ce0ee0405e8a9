package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// bootstrapper is the maker of bootstrap data, as one process asks it.
type bootstrapper struct {
	p     *process
	maker *bootstrapMaker
	shown *managerClock // the times of a token are the cluster's, and told by this clock
}

// dataDeleted: the bootstrap data of a pool are deleted.
type dataDeleted struct{ pool object.Key }

// Look implements manager.PoolBootstrap, from a cache.
func (b bootstrapper) Look(_ context.Context, p *machinepool.Pool) (machinepool.BootstrapAnswer, error) {
	if b.p.dead {
		return machinepool.BootstrapAnswer{}, errDead
	}
	have := b.maker.bootstraps[p.Key]
	if have == nil {
		return machinepool.BootstrapAnswer{}, nil
	}
	answer := machinepool.BootstrapAnswer{Ready: have.there, Found: have.there}
	if !have.expires.IsZero() {
		answer.TokenExpires = have.expires.Add(b.shown.skew)
	}
	return answer, nil
}

// Data implements manager.PoolBootstrap.
func (b bootstrapper) Data(_ context.Context, p *machinepool.Pool) (data *machine.Secret, err error) {
	err = b.p.call(controlAPI, func() error {
		if have := b.maker.bootstraps[p.Key]; have != nil && have.there && needsData(p) {
			data = &machine.Secret{Data: map[string][]byte{machine.UserData: []byte("join")}}
		}
		return nil
	})
	return data, err
}

// Renew implements manager.PoolBootstrap.
func (b bootstrapper) Renew(_ context.Context, p *machinepool.Pool, until time.Time) error {
	return b.p.call(controlAPI, func() error {
		b.maker.renewals++
		if have := b.maker.bootstraps[p.Key]; have != nil && have.there {
			have.expires = until.Add(-b.shown.skew)
		}
		return nil
	})
}

// Delete implements manager.PoolBootstrap.
func (b bootstrapper) Delete(_ context.Context, p *machinepool.Pool) error {
	return b.p.call(controlAPI, func() error {
		if have := b.maker.bootstraps[p.Key]; have == nil || have.pool != p.UID {
			if have != nil && !b.p.belated { // a call of a dead process may lead to that
				b.p.violate("P35", "the bootstrap data of pool %s were to be deleted for an earlier one", p.Name)
			}
			return nil
		}
		b.p.emit(dataDeleted{p.Key})
		delete(b.maker.bootstraps, p.Key)
		return nil
	})
}
