package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// bootstraps holds the data that machines of pools boot from, by the pools' keys. A token in the
// data expires; machines that come after that wait outside.
type bootstraps map[object.Key]*bootstrap

type bootstrap struct {
	pool    string // its UID
	there   bool
	made    bool      // for this pool, and deleted with it
	expires time.Time // of the token; zero: there is none
}

// good reports whether a machine of a pool can join now.
func (b bootstraps) good(pool object.Key, now time.Time) bool {
	have := b[pool]
	return have != nil && have.there && (have.expires.IsZero() || now.Before(have.expires))
}

// bootstrapOf begins to make what a pool's machines boot from. The maker takes a while, and then
// reports the data by name.
func (w *World) bootstrapOf(p *machinepool.Pool) {
	boot := &p.Spec.Template.Bootstrap
	made := &bootstrap{pool: p.UID, there: boot.Config == "", made: boot.Config != ""}
	w.bootstraps[p.Key] = made
	if boot.Config == "" {
		return
	}
	w.clock.after(10*time.Second+w.upTo(time.Minute), func() {
		if w.bootstraps[p.Key] != made {
			return // the pool is gone
		}
		made.there, made.expires = true, w.clock.now.Add(15*time.Minute)
		name := p.Name + "-boot"
		w.editPool(p.Name, func(now *machinepool.Pool) { now.Spec.Template.Bootstrap.DataSecret = &name })
		w.check()
	})
}

// bootstrapper is the maker of bootstrap data, as one process asks it.
type bootstrapper struct{ p *process }

// Look implements manager.PoolBootstrap, from a cache.
func (b bootstrapper) Look(_ context.Context, p *machinepool.Pool) (machinepool.BootstrapAnswer, error) {
	if b.p.dead {
		return machinepool.BootstrapAnswer{}, errDead
	}
	have := b.p.w.bootstraps[p.Key]
	if have == nil {
		return machinepool.BootstrapAnswer{}, nil
	}
	return machinepool.BootstrapAnswer{Ready: have.there, Found: have.there, TokenExpires: have.expires}, nil
}

// Data implements manager.PoolBootstrap.
func (b bootstrapper) Data(_ context.Context, p *machinepool.Pool) (data *machine.Secret, err error) {
	err = b.p.call(control, func() error {
		if have := b.p.w.bootstraps[p.Key]; have != nil && have.there && needsData(p) {
			data = &machine.Secret{Data: map[string][]byte{machine.UserData: []byte("join")}}
		}
		return nil
	})
	return data, err
}

// Renew implements manager.PoolBootstrap.
func (b bootstrapper) Renew(_ context.Context, p *machinepool.Pool, until time.Time) error {
	return b.p.call(control, func() error {
		b.p.w.renewals++
		if have := b.p.w.bootstraps[p.Key]; have != nil && have.there {
			have.expires = until
		}
		return nil
	})
}

// Delete implements manager.PoolBootstrap.
func (b bootstrapper) Delete(_ context.Context, p *machinepool.Pool) error {
	return b.p.call(control, func() error {
		if have := b.p.w.bootstraps[p.Key]; have == nil || have.pool != p.UID {
			if have != nil && !b.p.w.belated { // a call of a dead process may lead to that
				b.p.w.violate("P35", "the bootstrap data of pool %s were to be deleted for an earlier one", p.Name)
			}
			return nil
		}
		b.p.w.emit(dataDeleted{p.Key})
		delete(b.p.w.bootstraps, p.Key)
		return nil
	})
}

// dataDeleted: the bootstrap data of a pool are deleted.
type dataDeleted struct{ pool object.Key }
