package deployment_test

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/internal/testkit/rollouts"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

const (
	namespace = rollouts.Namespace
	hashLabel = rollouts.HashLabel
)

var (
	begin        = rollouts.Begin
	classes      = rollouts.Classes
	limits       = rollouts.Limits
	web          = rollouts.Web
	class        = rollouts.Class
	stored       = rollouts.Stored
	ownSet       = rollouts.OwnSet
	drawStrategy = rollouts.Strategy
	drawChildren = rollouts.Children
	copyOf       = rollouts.Copy
)

// drawLive returns what a live read might find, in any state, reachable or not.
func drawLive(t *rapid.T) *deployment.Observation {
	o := rollouts.Any(t)
	o.Read = live
	return o
}

// drawGarbage returns what no store should hold, and callers should not pass, but might.
func drawGarbage(t *rapid.T) *deployment.Observation {
	o := rollouts.Garbage(t)
	o.Read = live
	o.Orphans = []*machineset.Set{nil, {}, {Meta: object.Meta{Key: object.Key{Namespace: namespace}, Labels: map[string]string{"app": "web"}}}}
	o.Taken = rapid.SampledFrom([]*deployment.Taken{nil, {}, {Name: "web-s6vfvz2m2l"}, {Name: "web-s6vfvz2m2l", Set: &machineset.Set{}}}).Draw(t, "taken")
	o.Failed = rapid.SampledFrom([]*machine.Outcome{nil, {}, {Code: codes.Code(200)}}).Draw(t, "failed")
	o.Failures = rapid.SampledFrom([]int{-1, 0, 5, math.MaxInt}).Draw(t, "failures")
	o.StatusWritten = rapid.SampledFrom([]time.Time{{}, begin, begin.AddDate(9, 0, 0)}).Draw(t, "written")
	return o
}
