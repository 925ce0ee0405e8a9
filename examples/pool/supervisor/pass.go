package supervisor

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// pass looks at the agents, enters what follows, and carries it out. over says that the group does
// not exist any more.
func (s *supervisor) pass(ctx context.Context) (over bool, err error) {
	if err := s.abandoned(); err != nil {
		return false, err
	}
	var todo *group.Group
	err = s.dir.Change(ctx, s.Group, func(g *group.Group) (*group.Group, error) {
		if g == nil {
			return nil, nil //nolint:nilnil // it is gone
		}
		// The states are read after the record: by older ones, agents that serve could be taken
		// for some that don't, and a new spec would replace all of them at once.
		states, err := s.states(g)
		if err != nil {
			return nil, err
		}
		g.Going = g.Going || s.left
		g.Next(states, s.newName)
		if g.Going && len(g.Members) == 0 {
			return nil, nil //nolint:nilnil // its last agent has ended
		}
		todo = g.Clone()
		return g, nil
	})
	if err != nil || todo == nil {
		return err == nil, err
	}
	return false, s.carryOut(ctx, todo)
}

// newName returns an agent's name: the pool's, and a unique part.
func (s *supervisor) newName() string {
	_, pool, _ := strings.Cut(s.Group, "_")
	return pool + "-" + strings.ToLower(rand.Text()[:8])
}

// states returns the states of the members' processes.
func (s *supervisor) states(g *group.Group) (map[string]group.State, error) {
	all, err := s.driver.Roster(s.Cluster).Entries()
	states := make(map[string]group.State, len(g.Members))
	for _, m := range g.Members {
		for _, e := range all {
			switch {
			case m.ProviderID != procdriver.ProviderID(s.Cluster, e.Name, e.Instance):
			case !e.Alive:
				states[m.Name] = group.Gone
			case e.State == roster.Serving:
				states[m.Name] = group.Serving
			default:
				states[m.Name] = group.Booting
			}
		}
	}
	return states, err
}

// done is the result for one member.
type done struct {
	id    string // it is up
	ended bool
	err   error
}

// carryOut starts the members that are not up and ends those that are removed, all at the same
// time, and enters the results.
func (s *supervisor) carryOut(ctx context.Context, g *group.Group) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	results := make(map[string]done)
	if time.Now().Before(s.held) {
		return nil
	}
	for i := range g.Members {
		m := &g.Members[i]
		if !m.Going && m.ProviderID != "" {
			continue
		}
		wg.Go(func() {
			var d done
			if m.Going {
				d.err = s.end(ctx, m)
				d.ended = d.err == nil
			} else {
				d.id, d.err = s.start(ctx, m, g.Boot)
			}
			mu.Lock()
			defer mu.Unlock()
			results[m.Name] = d
		})
	}
	wg.Wait()
	if len(results) == 0 {
		return nil
	}
	return s.dir.Change(ctx, s.Group, func(g *group.Group) (*group.Group, error) {
		if g != nil {
			s.enter(g, results)
		}
		return g, nil
	})
}

// enter records the results of starts and ends.
func (s *supervisor) enter(g *group.Group, results map[string]done) {
	var left []group.Member
	g.Trouble = ""
	for _, m := range g.Members {
		d := results[m.Name]
		if d.err != nil {
			g.Trouble = codes.Message(d.err)
			s.held = time.Now().Add(again)
		}
		if d.id != "" {
			m.ProviderID = d.id
		}
		if !d.ended {
			left = append(left, m)
		}
	}
	g.Members = left
}

// start runs a member's agent: the running one, or a new one.
func (s *supervisor) start(ctx context.Context, m *group.Member, boot []byte) (string, error) {
	if len(boot) > 0 {
		boot = []byte(m.Name) // the provider fills in the name of the node
	}
	a, err := s.driver.CreateMachine(ctx, &driver.CreateMachineRequest{
		Machine: standIn(m), Class: classOf(m),
		Secret: &machine.Secret{Data: map[string][]byte{machine.UserData: boot}},
	})
	if err != nil {
		return "", err
	}
	return a.ProviderID, nil
}

// end ends a member's agent, and waits for it.
func (s *supervisor) end(ctx context.Context, m *group.Member) error {
	_, err := s.driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: standIn(m), Class: classOf(m)})
	return err
}

// standIn returns a member as the driver of machines knows it.
func standIn(m *group.Member) *machine.Machine {
	return &machine.Machine{Meta: object.Meta{Key: object.Key{Name: m.Name}}, Spec: machine.Spec{ProviderID: m.ProviderID}}
}

func classOf(m *group.Member) *machine.Class {
	return &machine.Class{Provider: procdriver.Provider, ProviderSpec: m.Spec.Encode()}
}
