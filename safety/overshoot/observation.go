package overshoot

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
)

// Observation is a deployment with its sets, or a set that has no deployment, with their machines.
// Caches are good enough, because a later decision corrects each mistake.
type Observation struct {
	// Deployment owns the sets. Nil: there is none, and Sets holds one set.
	Deployment *deployment.Deployment
	// Sets are all sets that the deployment owns, in any order. Without a deployment the first one
	// counts.
	Sets []deployment.Children
}

// Write is one change in the store: *LabelDeployment, *LabelSet or *TellDeployment.
//
//sumtype:decl
type Write interface{ write() }

// LabelDeployment stores a deployment's metadata.
type LabelDeployment struct{ Deployment *deployment.Deployment }

// LabelSet stores a set's metadata.
type LabelSet struct{ Set *machineset.Set }

// TellDeployment stores a deployment's status.
type TellDeployment struct{ Status deployment.Status }

func (*LabelDeployment) write() {}
func (*LabelSet) write()        {}
func (*TellDeployment) write()  {}

// Plan is what to do next: Write, or nothing until something changes.
type Plan struct {
	// Write compares and swaps. The store's answer replaces the observed object. A conflict, or a
	// "not found", ends the pass.
	Write Write
	Why   decision.Why
	// Warn is a warning for the owner. Zero: there is none.
	Warn decision.Why
}
