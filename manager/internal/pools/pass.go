package pools

import (
	"context"
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/manager/internal/pace"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/manager/port"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Config is what pools need of the rest of a fleet.
type Config struct {
	Pools   *engine.Objects[*machinepool.Pool]
	Classes *engine.Objects[*machine.Class]
	Nodes   store.Collection[*machine.Node]   // nil: there is no cluster
	Secrets store.Collection[*machine.Secret] // nil: there are none
	// Machines own nodes that are of no pool. Nil: there are none.
	Machines *engine.Objects[*machine.Machine]
	// NodeMachine is the label of a node that names its machine.
	NodeMachine string
	// SecretNamespaces are those that classes may take secrets from, besides their own. Nil: all.
	SecretNamespaces []string

	LedSince time.Time // when the term of this process began; zero: it has none

	Driver pooldriver.Driver
	// Tokens makes the bootstrap tokens that bootstrap data ask for. Nil: there are none.
	Tokens port.Tokens
	// CallTimeout bounds each call of Tokens.
	CallTimeout time.Duration
	Bootstrap   port.PoolBootstrap
	Drainer     port.Drainer
	Keeper      port.NodeKeeper // nil: nodes are not drained
	Policy      *machinepool.Policy
	// Paces are shared by all callers of the provider. Nil: no call has to wait.
	Paces *pace.Paces

	// Delay reports whether no pass may be made yet. Nil: any time.
	Delay func() (engine.Result, bool)
	// Frozen reports whether an API server does not answer.
	Frozen func() bool
	// Thaw returns when to look at a frozen pool again. Unfrozen, it would be due at the time at.
	Thaw func(at time.Time) time.Time
	// Panic sets the permits of a pool's drains aside, because its pass panicked; may be nil.
	Panic func(context.Context, object.Key)
}

type reconciler struct {
	Config
	secrets  secrets.Secrets
	features machinepool.Features
	// groups holds the last answer about each pool's group, by the pool's key.
	// Losing it costs a call.
	groups sync.Map
	// memories holds what is remembered of earlier answers about each pool's group, by the pool's key.
	memories sync.Map
	// tokens holds what is known of each pool's bootstrap token, by the pool's key.
	tokens sync.Map
}

// memory is what is remembered of a pool by its UID.
type memory struct {
	uid string
	machinepool.Memory
}

// memoryOf returns what is remembered of a pool.
func (r *reconciler) memoryOf(pool *machinepool.Pool) *machinepool.Memory {
	if have, ok := r.memories.Load(pool.Key); ok && have.(*memory).uid == pool.UID {
		return &have.(*memory).Memory
	}
	m := &memory{uid: pool.UID}
	r.memories.Store(pool.Key, m)
	return &m.Memory
}

// forget drops what is known of a pool that is gone.
func (r *reconciler) forget(key object.Key) {
	r.groups.Delete(key)
	r.memories.Delete(key)
	r.tokens.Delete(key)
}

// seenGroup is the group of a pool, by the pool's UID, as it was last seen.
type seenGroup struct {
	uid     string
	group   *machinepool.Group
	forCall bool // it was kept for a call that waits for its turn
}

// pass is one pass over one pool.
type pass struct {
	*engine.Pass
	*reconciler
	o    machinepool.Observation
	plan machinepool.Plan
	// unsure says that it is not known whether the bootstrap data ask for a token.
	unsure bool

	turn   bool // the pace of the provider lets this pass make its next call
	slowed bool // the provider asked to wait, in answer to the call of the last effect
}

// readNodes finds the nodes of the pool's instances in the cache.
func (p *pass) readNodes(ctx context.Context) error {
	if p.Nodes == nil || p.o.Pool.Deleted() {
		return nil
	}
	found := make(map[string]*machine.Node, len(p.o.Pool.Spec.ProviderIDs))
	for _, id := range p.o.Pool.Spec.ProviderIDs {
		if id == "" {
			continue
		}
		nodes, err := p.Nodes.List(ctx, store.Query{Index: index.VM, Value: id})
		if err != nil {
			return err
		}
		for _, n := range nodes { // of two nodes with one ID, the younger one counts
			if have := found[id]; have == nil || n.CreatedAt.After(have.CreatedAt) {
				found[id] = n
			}
		}
	}
	p.o.Nodes, p.o.Unmatched = found, nil
	for _, id := range p.o.Pool.Spec.ProviderIDs {
		if id != "" && found[id] == nil {
			free, err := p.freeNodes(ctx)
			p.o.Unmatched = machinepool.MatchNodes(p.o.Pool.Spec.ProviderIDs, found, free)
			return err
		}
	}
	return nil
}

// freeNodes returns the nodes that belong to no machine and no instance of a pool, as far as names and IDs
// show.
func (p *pass) freeNodes(ctx context.Context) (free []*machine.Node, err error) {
	nodes, err := p.Nodes.List(ctx, store.Query{})
	if err != nil {
		return nil, err
	}
	pools, err := p.Pools.List(ctx, store.Query{})
	if err != nil {
		return nil, err
	}
	var machines []*machine.Machine
	if p.Machines != nil {
		if machines, err = p.Machines.List(ctx, store.Query{}); err != nil {
			return nil, err
		}
	}
	ids, names := make(map[string]bool), make(map[string]bool)
	for _, pool := range pools {
		for _, id := range pool.Spec.ProviderIDs {
			ids[id] = true
		}
	}
	for _, m := range machines {
		ids[m.Spec.ProviderID], names[m.Spec.NodeName] = true, true
	}
	delete(ids, "")
	for _, n := range nodes {
		if !ids[n.ProviderID] && !names[n.Name] && (p.NodeMachine == "" || n.Labels[p.NodeMachine] == "") {
			free = append(free, n)
		}
	}
	return free, nil
}

// validFor is how long an answer about a group is used for a call that waits for its turn. Otherwise
// every turn would be spent on asking for the group again.
const validFor = 2 * time.Minute

// calls reports whether the plan calls the provider, or announces such a call.
func (p *pass) calls() bool {
	if p.plan.Write != nil {
		return p.plan.Announces
	}
	switch p.plan.Effect.(type) {
	case machinepool.GetGroup, machinepool.CreateGroup, machinepool.UpdateGroup, machinepool.ScaleGroup, machinepool.DeleteGroup,
		*machinepool.RemoveInstances, machinepool.ReplaceOne, *machinepool.ReportDrained:
		return true
	case machinepool.ReadPool, *machinepool.DrainNodes, *machinepool.KeepNodes, machinepool.RemoveBootstrap, machinepool.Renew,
		machinepool.RemoveToken:
	}
	return false
}

// paced returns a wait instead of a plan that calls the provider, until it is the pool's turn.
func (p *pass) paced() (engine.Step, bool) {
	if p.turn || p.o.Class == nil || !p.calls() {
		return engine.Step{}, false
	}
	now := p.Now()
	at := p.Paces.Ask(pace.Of("pool", p.Key), p.o.Class, 1, now)
	if p.turn = at.IsZero(); p.turn {
		return engine.Step{}, false
	}
	if p.o.Looked && p.o.Group != nil {
		p.groups.Store(p.Key, seenGroup{uid: p.o.Pool.UID, group: p.o.Group, forCall: true})
	}
	why := decision.Why{Reason: pace.ReasonPaced, Name: p.o.Class.Name, For: at.Sub(now)}
	return engine.Step{Verb: engine.Wait, Why: why, At: at}, true
}

// restore restores the observation, after a call that the provider did not carry out.
func (p *pass) restore(before *machinepool.Observation) {
	p.o, p.turn = *before, false
	if p.o.Group != nil {
		p.groups.Store(p.Key, seenGroup{uid: p.o.Pool.UID, group: p.o.Group})
	}
}
