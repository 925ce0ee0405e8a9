package sim

import (
	"time"

	"github.com/millwright-go/millwright/manager"
)

// api is one of the two API servers.
type api int

const (
	controlAPI api = iota // machines, sets, deployments, classes, secrets
	targetAPI             // nodes, pods, budgets
	apiCount
)

// apiOf returns the API server that has objects of a kind.
func apiOf(kind manager.Kind) api {
	if kind == manager.KindNode || kind == manager.KindWorkload {
		return targetAPI
	}
	return controlAPI
}

// downtime is the last time that an API did not answer.
type downtime struct{ began, ends time.Time }

// apis are the API servers and their outages.
type apis struct {
	*ground
	outages  [apiCount]downtime
	noTarget bool          // there is no target cluster, so that its API can't be out
	slowest  time.Duration // see longAgo
}

func newAPIs(g *ground, noTarget bool) *apis {
	return &apis{ground: g, noTarget: noTarget, slowest: slowest(g.hazards)}
}

// interrupted: the process that lives is about to be kept from its work, by an outage or its end.
type interrupted struct{}

// stop makes an API refuse every call for a while, and report no change.
func (s *apis) stop(a api, d time.Duration) {
	if a == targetAPI && s.noTarget {
		return
	}
	s.emit(interrupted{})
	end := s.Now().Add(d)
	if !s.down(a) {
		s.outages[a].began = s.Now()
	}
	if end.After(s.outages[a].ends) {
		s.outages[a].ends = end
	}
}

// down reports whether an API does not answer.
func (s *apis) down(a api) bool { return s.Now().Before(s.outages[a].ends) }

// outSince reports whether an API was out since then.
func (s *apis) outSince(then time.Time) bool {
	return s.outages[controlAPI].ends.After(then) || s.outages[targetAPI].ends.After(then)
}

// inFlight is how long an order may be under way: a machine that has become
// available since it was given was not when it was.
const inFlight = 30 * time.Second

// underWay reports whether an order may still be under way that was given by then:
// while an API does not answer, none gets on.
func (s *apis) underWay(then time.Time) bool { return s.Now().Sub(s.answering(then)) <= inFlight }

// longAgo reports whether no order from before then can still be under way from a process that
// lives. Calls to the provider take longest, and while an API does not answer, nothing makes
// progress. The zero time never was.
func (s *apis) longAgo(then time.Time) bool {
	return !then.IsZero() && s.Now().Sub(s.answering(then)) > s.slowest
}

// answering is since when both APIs answer, then at the earliest.
func (s *apis) answering(then time.Time) time.Time {
	for a := range apiCount {
		if ends := s.outages[a].ends; ends.After(then) {
			then = ends
		}
	}
	return then
}

// slowest is how long a pass may take that began with what was true before.
func slowest(f *Faults) time.Duration { return 2*time.Minute + 3*f.CallTime + f.CacheLag }
