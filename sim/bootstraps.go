package sim

import (
	"time"

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

// needsData reports whether a pool's machines boot from bootstrap data.
func needsData(p *machinepool.Pool) bool {
	name := p.Spec.Template.Bootstrap.DataSecret
	return name != nil && *name != ""
}

// bootstrapMaker makes the bootstrap data of pools.
type bootstrapMaker struct {
	*ground
	*stores
	bootstraps bootstraps
	renewals   int // of tokens
}

// see deletes the data of a pool that is gone.
func (b *bootstrapMaker) see(e event) {
	if e, ok := e.(stored[*machinepool.Pool]); ok && e.now == nil {
		delete(b.bootstraps, e.key)
	}
}

// bootstrapOf begins to make what a pool's machines boot from. The maker takes a while, and then
// reports the data by name.
func (b *bootstrapMaker) bootstrapOf(p *machinepool.Pool) {
	boot := &p.Spec.Template.Bootstrap
	made := &bootstrap{pool: p.UID, there: boot.Config == "", made: boot.Config != ""}
	b.bootstraps[p.Key] = made
	if boot.Config == "" {
		return
	}
	b.After(10*time.Second+b.upTo(time.Minute), func() {
		if b.bootstraps[p.Key] != made {
			return // the pool is gone
		}
		made.there, made.expires = true, b.Now().Add(15*time.Minute)
		name := p.Name + "-boot"
		b.editPool(p.Name, func(now *machinepool.Pool) { now.Spec.Template.Bootstrap.DataSecret = &name })
		b.check()
	})
}
