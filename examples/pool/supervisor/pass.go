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

// pass decides which agents to start and end, records the decision, and carries it out. gone reports
// that the group does not exist any more.
func (s *supervisor) pass(ctx context.Context) (gone bool, err error) {
	if err := s.checkProvider(); err != nil {
		return false, err
	}
	var todo *group.Group
	err = s.dir.Change(ctx, s.Group, func(g *group.Group) (*group.Group, error) {
		if g == nil {
			return nil, nil //nolint:nilnil // the group is gone
		}
		// The states must be newer than the record. If they were older, agents that serve by now might
		// count as booting, and a new spec would replace all of them at once.
		states, err := s.states(g)
		if err != nil {
			return nil, err
		}
		g.Deleting = g.Deleting || s.abandoned
		g.Next(states, s.newName)
		if g.Deleting && len(g.Members) == 0 {
			return nil, nil //nolint:nilnil // the last agent has ended: the record is removed
		}
		todo = g.Clone()
		return g, nil
	})
	if err != nil || todo == nil {
		return err == nil, err
	}
	return false, s.carryOut(ctx, todo)
}

// newName returns a name for a new agent: the name of the pool, and a random part.
func (s *supervisor) newName() string {
	_, pool, _ := strings.Cut(s.Group, "_")
	return pool + "-" + strings.ToLower(rand.Text()[:8])
}

// states returns the states of the members' processes, by member name.
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

// result is the result of the start or the end of one member's agent.
type result struct {
	id    string // the provider ID of the agent that was started
	ended bool
	err   error
}

// carryOut starts and ends agents, all at the same time, and records the results.
func (s *supervisor) carryOut(ctx context.Context, g *group.Group) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	results := make(map[string]result)
	if time.Now().Before(s.retryAt) {
		return nil
	}
	for i := range g.Members {
		m := &g.Members[i]
		if !m.Terminating && m.ProviderID != "" {
			continue
		}
		wg.Go(func() {
			var r result
			if m.Terminating {
				r.err = s.end(ctx, m)
				r.ended = r.err == nil
			} else {
				r.id, r.err = s.start(ctx, m, g.Boot)
			}
			mu.Lock()
			defer mu.Unlock()
			results[m.Name] = r
		})
	}
	wg.Wait()
	if len(results) == 0 {
		return nil
	}
	return s.dir.Change(ctx, s.Group, func(g *group.Group) (*group.Group, error) {
		if g != nil {
			s.record(g, results)
		}
		return g, nil
	})
}

// record puts the results into the group.
func (s *supervisor) record(g *group.Group, results map[string]result) {
	var left []group.Member
	g.Trouble = ""
	for _, m := range g.Members {
		r := results[m.Name]
		if r.err != nil {
			g.Trouble = codes.Message(r.err)
			s.retryAt = time.Now().Add(retry)
		}
		if r.id != "" {
			m.ProviderID = r.id
		}
		if !r.ended {
			left = append(left, m)
		}
	}
	g.Members = left
}

// start starts a member's agent, unless it runs already, and returns its provider ID.
func (s *supervisor) start(ctx context.Context, m *group.Member, boot []byte) (string, error) {
	if len(boot) > 0 {
		boot = []byte(m.Name) // this provider replaces user data by the name of the node
	}
	a, err := s.driver.CreateMachine(ctx, &driver.CreateMachineRequest{
		Machine: machineOf(m), Class: classOf(m),
		Secret: &machine.Secret{Data: map[string][]byte{machine.UserData: boot}},
	})
	if err != nil {
		return "", err
	}
	return a.ProviderID, nil
}

// end ends a member's agent, and waits for it.
func (s *supervisor) end(ctx context.Context, m *group.Member) error {
	_, err := s.driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: machineOf(m), Class: classOf(m)})
	return err
}

// machineOf returns a machine that stands for a member in calls of procdriver.
func machineOf(m *group.Member) *machine.Machine {
	return &machine.Machine{Meta: object.Meta{Key: object.Key{Name: m.Name}}, Spec: machine.Spec{ProviderID: m.ProviderID}}
}

func classOf(m *group.Member) *machine.Class {
	return &machine.Class{Provider: procdriver.Provider, ProviderSpec: m.Spec.Encode()}
}
